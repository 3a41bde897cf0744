package gate

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// packageHints says what to use in place of packages that are not allowed.
func packageHints() map[string]string {
	return map[string]string{
		"net/http": "Use call.Fetch(url) or call.FetchWith(recurgent.Request{...}): the daemon performs the request.",
		"os":       "Programs have no files and no environment. What they need comes as arguments.",
		"sync":     "A program has one goroutine and needs no locks. Remove them.",
		"reflect":  "Use type switches. Of reflect only DeepEqual is available.",
		"context":  "A run is limited by the daemon; no context is needed. call.Context is the session's memory.",
		"log":      "Return messages in the value or in the error.",
		"unsafe":   "Use encoding/binary or math.Float64bits.",
		"C":        "Write it in Go.",
	}
}

// importHint names what to use in place of a package that is not allowed.
func importHint(path string) string {
	hints := packageHints()
	base, _, _ := strings.Cut(path, "/")
	for _, key := range []string{path, base} {
		if h, ok := hints[key]; ok {
			return h
		}
	}
	switch {
	case strings.HasSuffix(path, "goquery"), strings.HasPrefix(path, "golang.org/x/net/html"), strings.HasSuffix(path, "/cascadia"), strings.HasSuffix(path, "/htmlquery"), strings.Contains(path, "gocolly"), strings.HasSuffix(path, "/soup"):
		return fmt.Sprintf("Import %q: doc, err := html.Parse(page), then doc.Find(selector) with Each, Text, Attr and others as in goquery, and Table, Records and Links.", allow.Page)
	case strings.HasSuffix(path, "template"):
		return "Build the text with fmt and strings.Builder; html.EscapeString escapes."
	case strings.HasSuffix(path, "/"+allow.Host):
		return fmt.Sprintf("Import %q.", allow.Host)
	case strings.Contains(base, "."):
		return "Only packages of the standard library are available: write what you need of it."
	}
	return "Use the packages that the instructions list."
}

// syntaxHint guesses what a text is that is not Go.
func syntaxHint(source string) string {
	packages := 0
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			return "Submit the Go file alone, without Markdown fences and without text around it."
		}
		if strings.HasPrefix(line, "package ") {
			packages++
		}
	}
	start := strings.TrimLeft(source, " \t\r\n")
	switch {
	case packages > 1:
		return "Submit one file: one package clause, one import declaration, then all declarations."
	case strings.Contains(source, "&lt;") || strings.Contains(source, "&amp;") || strings.Contains(source, "&gt;"):
		return "Submit Go as it is, without HTML entities such as &lt;."
	case packages == 1 && strings.HasPrefix(start, "package ") && strings.Count(source, "\n") < 3 && strings.Contains(source, `\n`):
		return `Submit Go with line breaks, not with the two characters \n in their place.`
	case packages == 0 && (strings.HasPrefix(start, "import") || strings.HasPrefix(start, "func ") || strings.HasPrefix(start, "type ")):
		return "Begin the file with: package tool"
	}
	return "Submit one complete Go file in package tool."
}

// hintFor says what to do about a type error, where it takes more than its text, and of which type the refusal is.
func (c *check) hintFor(e types.Error) (hint, kind string) {
	if what, ok := strings.CutPrefix(e.Msg, "undefined: "); ok {
		pkg, name, selected := strings.Cut(what, ".")
		if !selected {
			return c.packageNameHint(pkg)
		}
		for _, p := range c.gate.lib.allowed {
			if p.Name() == pkg && !p.Shows(name) {
				return fmt.Sprintf("%s.%s is not available to programs. %s", pkg, name, symbolHint(p.Path)), DependencyPolicy
			}
		}
		return c.pageHint(pkg), InvalidCode
	}
	if strings.Contains(e.Msg, "need type assertion") || strings.Contains(e.Msg, "of interface type any") || strings.Contains(e.Msg, "mismatched types any") ||
		strings.Contains(e.Msg, "(type any is interface with no methods)") {
		return "What comes from call.Args, call.Context and decoded JSON is of type any: assert it first, as in n, ok := x.(float64). Numbers are float64, lists []any, objects map[string]any.", InvalidCode
	}
	return selectionHint(plainMessage(e)), InvalidCode
}

// packageNameHint is for an undefined name that is a package's.
func (c *check) packageNameHint(name string) (hint, kind string) {
	if name == "lt" || name == "gt" || name == "amp" {
		return syntaxHint(c.source), InvalidCode
	}
	var paths []string
	for path, p := range c.gate.lib.allowed {
		if p.Name() == name {
			paths = append(paths, fmt.Sprintf("%q", path))
		}
	}
	if len(paths) > 1 {
		slices.Sort(paths)
		return "Import the one that you mean of " + strings.Join(paths, ", ") + ".", InvalidCode
	}
	for path, hint := range packageHints() {
		if path == name || strings.HasSuffix(path, "/"+name) {
			return fmt.Sprintf("Package %q is not available to programs. %s", path, hint), DependencyPolicy
		}
	}
	return "", InvalidCode
}

func symbolHint(path string) string {
	switch path {
	case "time":
		return "There are no timers: a run does one step after the other."
	case "reflect":
		return "Use type switches; of reflect only DeepEqual is available."
	}
	return "Do without it."
}

// plainMessage is a type checker's message with the host package as programs know it.
func plainMessage(e types.Error) string {
	return strings.NewReplacer(`"`+allow.HostPath+`"`, allow.Host, `"`+allow.TruePath(allow.Page)+`"`, "html").Replace(strings.TrimSpace(e.Msg))
}
