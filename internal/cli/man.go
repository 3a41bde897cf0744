package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the manual pages for release archives: one per command, with the text of --help.
func manCommand(sh Shell) *cobra.Command {
	return &cobra.Command{Use: "man DIR", Hidden: true, Short: "Write the manual pages into a directory",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.InitDefaultCompletionCmd()
			return exitWith(ExitFailed, writeManPages(root, args[0]))
		}}
}

func writeManPages(c *cobra.Command, dir string) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(manPage(c)),
		0o644); err != nil {
		return err
	}
	for _, sub := range shownCommands(c) {
		if err := writeManPages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// shownCommands returns the commands that --help lists, except help itself.
func shownCommands(c *cobra.Command) []*cobra.Command {
	var shown []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			shown = append(shown, sub)
		}
	}
	return shown
}

// manPage returns a page in the roff of man(7). It contains no date, so the same commit gives the same bytes.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	title := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"recurgentd\" \"recurgentd manual\"\n", roffWord(strings.ToUpper(title)))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", roff(title), roff(c.Short))
	usage := c.UseLine()
	if len(shownCommands(c)) > 0 && !c.Runnable() {
		usage = c.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, ".nf\n%s\n.fi\n.SH DESCRIPTION\n", roff(usage))
	// No fill mode: the text is already wrapped, and has columns.
	fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(strings.TrimSpace(orShort(c))))
	if subs := shownCommands(c); len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
		}
	}
	if c.Flags().HasAvailableFlags() || c.InheritedFlags().HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
	}
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(strings.Trim(c.Example, "\n")))
	}
	var also []string
	if c.HasParent() {
		also = append(also, strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))
	}
	for _, sub := range shownCommands(c) {
		also = append(also, strings.ReplaceAll(sub.CommandPath(), " ", "-"))
	}
	if len(also) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, name := range also {
			comma := ","
			if i == len(also)-1 {
				comma = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(name), comma)
		}
	}
	return b.String()
}

func orShort(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short + "."
}

func manFlag(b *strings.Builder, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if value := f.Value.Type(); value != "bool" && value != "" {
		name += " " + value
	}
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(f.Usage))
}

// roff escapes text so that no line becomes a roff request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// roffWord is roff for an argument of a roff request.
func roffWord(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
