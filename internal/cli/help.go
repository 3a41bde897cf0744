package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// helpColumns is the width of help texts.
const helpColumns = 80

// fill wraps the paragraphs of a text at helpColumns. A paragraph with indented lines stays as it is.
func fill(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") || strings.Contains(p, "\n\t") {
			continue
		}
		var b strings.Builder
		columns := 0
		for _, word := range strings.Fields(p) {
			n := utf8.RuneCountInString(word)
			switch {
			case columns == 0:
			case columns+1+n > helpColumns:
				b.WriteByte('\n')
				columns = 0
			default:
				b.WriteByte(' ')
				columns++
			}
			b.WriteString(word)
			columns += n
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}

// fillHelp wraps the long texts of our commands.
func fillHelp(c *cobra.Command) {
	c.Long = fill(c.Long)
	for _, sub := range c.Commands() {
		fillHelp(sub)
	}
}

// completeHelp wraps the help of our commands, and adds an example and the exit codes to the commands that cobra
// provides.
func completeHelp(root *cobra.Command) {
	fillHelp(root)
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
