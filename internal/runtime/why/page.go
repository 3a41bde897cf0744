package why

import (
	"fmt"
	"strings"
)

// A section of the page is a heading with its rows.
type section struct {
	title string
	rows  []string
}

// Text returns the page as plain text with printable characters and newlines only. heading formats a heading; nil
// returns it unchanged.
func (x *Explanation) Text(heading func(string) string) string {
	if heading == nil {
		heading = func(s string) string { return s }
	}
	var b strings.Builder
	// rows contain text by others: escape again whatever was quoted before
	line := func(indent, text string) { b.WriteString(indent + printable(text) + "\n") }
	b.WriteString(heading(printable("Why "+x.CallID)) + "\n")
	for l := range strings.Lines(x.Summary) {
		line("", strings.TrimSuffix(l, "\n"))
	}
	for _, s := range x.sections() {
		b.WriteString("\n" + heading(s.title) + "\n")
		for _, r := range s.rows {
			line("  ", r)
		}
	}
	return b.String()
}

// markdown escapes characters with a meaning in Markdown, and plain URLs, which some readers turn into links.
var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">",
	`\>`, "&", `\&`, "|", `\|`, "~", `\~`,
	"#", `\#`, "!", `\!`, "$", `\$`, "@", `\@`, "://", `:\//`, "www.", `www\.`)

// Markdown returns the page in Markdown. Text from others cannot format anything in it.
func (x *Explanation) Markdown() string {
	var b strings.Builder
	line := func(prefix, text string) { b.WriteString(prefix + markdown.Replace(printable(text)) + "\n") }
	line("# ", "Why "+x.CallID)
	b.WriteString("\n")
	for l := range strings.Lines(x.Summary) {
		line("- ", strings.TrimSuffix(l, "\n"))
	}
	for _, s := range x.sections() {
		b.WriteString("\n## " + s.title + "\n\n")
		for _, r := range s.rows {
			line("- ", r)
		}
	}
	return b.String()
}

// sections returns the sections below the summary that are not empty.
func (x *Explanation) sections() []section {
	var all []section
	add := func(title string, rows []string) {
		if len(rows) > 0 {
			all = append(all, section{title, rows})
		}
	}
	var others, reached, checks, policies, next []string
	for _, a := range x.Alternatives {
		others = append(others, word(a.Generation)+": "+a.WhyNot)
	}
	for _, c := range x.Candidates {
		others = append(others, "attempt "+word(c.Attempt)+": "+c.WhyNot)
	}
	for _, t := range x.Tools {
		others = append(others, word(x.Role)+"."+word(t.Method)+": "+t.WhyNot)
	}
	for _, d := range x.Effects {
		reached = append(reached, done(d.Kind, d.Target, d.Status, d.Error, d.Again))
	}
	for _, d := range x.Delegated {
		row := "called " + word(d.Role) + "." + word(d.Method) + ", " + word(d.CallID) + ": " + word(d.Status)
		if d.ErrorType != "" {
			row += ", " + word(d.ErrorType)
		}
		reached = append(reached, row)
	}
	for _, c := range x.Checks {
		checks = append(checks, fmt.Sprintf("%-6s  %s: %s", c.Result, c.Name, c.Detail))
	}
	for i := range x.Counterfactuals {
		c := &x.Counterfactuals[i]
		row := x.setting(c) + ": "
		switch {
		case c.Changes && restates(c.Reason):
			row += c.would()
		case c.Changes:
			row += c.would() + ", because " + reasonWords(c.Reason)
		case c.Then == "":
			row += "no change"
		}
		if c.Changes && c.Then != "" {
			row += "; "
		}
		row += c.Then
		policies = append(policies, row)
	}
	for _, s := range x.Next {
		next = append(next, s.Name+": "+s.request())
	}
	add("What else there was", others)
	add("What it fetched and called", reached)
	add("What its program noted", x.Notes)
	add("What was checked", checks)
	add("With another policy", policies)
	add("What to do next", next)
	add("What is not known any more", x.NotRecorded)
	return all
}

// done describes one request of a program to its host.
func done(kind, target string, status int, errorType string, again bool) string {
	row := word(kind)
	if target != "" {
		row += " " + address(target)
	}
	if status > 0 {
		row += fmt.Sprintf(", status %d", status)
	}
	if errorType != "" {
		row += ", " + word(errorType)
	}
	if again {
		row += ", asked before with the same answer"
	}
	return row
}

// address quotes a target, except for a single plain word or the HTTP method before a URL.
func address(target string) string {
	method, rest, two := strings.Cut(target, " ")
	if !two {
		return word(target)
	}
	return word(method) + " " + quoted(rest)
}

// request returns the command that sends the request or, without one, the request itself.
func (s *Step) request() string {
	if s.Command != "" {
		return s.Command
	}
	request := s.Method + " " + s.Path
	if len(s.Body) > 0 && string(s.Body) != "null" {
		request += " " + string(s.Body)
	}
	return request
}
