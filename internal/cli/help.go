package cli

import (
	"github.com/spf13/cobra"
)

// completeHelp adds an example and the exit codes to the commands that cobra provides.
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

// completionExample returns the command that installs the completion script of a shell.
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
