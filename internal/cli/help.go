package cli

import (
	"github.com/spf13/cobra"
)

// completeHelp gives the commands that cobra brings, help and completion, what every command of ours has: an example and
// what its exit codes mean.
func completeHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Example = "  recurgentd help call"
			c.Long += "\n\n" + exitsOfAll
		case "completion":
			c.Example = "  recurgentd completion bash"
			c.Long += "\n" + exitsOfAll
			for _, shell := range c.Commands() {
				shell.Example = completionExample(shell.Name())
				shell.Long += "\n" + exitsOfAll
			}
		}
	}
}

// completionExample is how the shell takes its script for good.
func completionExample(shell string) string {
	switch shell {
	case "zsh":
		return `  recurgentd completion zsh > "${fpath[1]}/_recurgentd"`
	case "fish":
		return "  recurgentd completion fish > ~/.config/fish/completions/recurgentd.fish"
	case "powershell":
		return "  recurgentd completion powershell | Out-String | Invoke-Expression"
	}
	return "  recurgentd completion bash > /etc/bash_completion.d/recurgentd"
}
