// Package text makes text safe for a terminal. Roles, methods, arguments and messages are untrusted, and terminals
// execute escape sequences, so all output for people passes through these functions. The package does no I/O.
package text

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// OneLine joins the lines of text with single spaces, without the white space around them. Spaces within a line stay.
func OneLine(text string) string {
	var lines []string
	for _, line := range strings.FieldsFunc(text, breaks) {
		if line = strings.Trim(line, " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// breaks reports whether the character is white space other than a space.
func breaks(r rune) bool { return r != ' ' && unicode.IsSpace(r) }

// Clean makes text safe for one line of a terminal. It removes control and format characters, invalid UTF-8 and excess
// combining marks, replaces white space other than spaces, with what surrounds it, by one space, and truncates to the
// number of columns (0 means 72).
func Clean(text string, columns int) string {
	if columns <= 0 {
		columns = 72
	}
	var b strings.Builder
	marks, runes := 0, 0
	blank, broken := true, true // the last character is a space; the spaces that follow are dropped
	for _, r := range text {    // invalid bytes appear as U+FFFD
		if runes++; runes > 8*columns {
			break
		}
		switch {
		case r == ' ' || unicode.IsSpace(r) || unicode.IsControl(r):
			if broken = broken || r != ' '; !broken || !blank {
				b.WriteByte(' ')
			}
			blank = true
			continue
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks > 2 || blank {
				continue
			}
		case !unicode.IsPrint(r):
			r, marks = '\uFFFD', 0
		default:
			marks = 0
		}
		blank, broken = false, false
		b.WriteRune(r)
	}
	return ansi.Truncate(strings.TrimRight(b.String(), " "), columns, "…")
}

// Cell is Clean for a table cell: empty text becomes a dash.
func Cell(text string) string {
	if text = Clean(text, 0); text == "" {
		return "-"
	}
	return text
}

// Plain replaces control and other unprintable characters in text of several lines by U+FFFD.
func Plain(text string) string { return strings.Map(plain, text) }

func plain(r rune) rune {
	if r != '\n' && !unicode.IsPrint(r) && !unicode.IsSpace(r) || r != '\n' && unicode.IsControl(r) {
		return '\uFFFD'
	}
	return r
}

// Verbatim is Plain for a text that somebody asked for as it is: tabs, CR LF, and format characters such as soft
// hyphens and joiners stay. Those that reorder text do not.
func Verbatim(text string) string {
	return strings.Map(func(r rune) rune {
		reorders := r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
		if r == '\t' || unicode.Is(unicode.Cf, r) && !reorders {
			return r
		}
		return plain(r)
	}, strings.ReplaceAll(text, "\r\n", "\n")) // a terminal shows both alike
}

// Printable replaces unprintable characters in source code, except tabs and line ends, by question marks.
func Printable(code string) string {
	lines := strings.Split(strings.TrimRight(code, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.Map(func(r rune) rune {
			if r != '\t' && !unicode.IsPrint(r) {
				return '?'
			}
			return r
		}, line)
	}
	return strings.Join(lines, "\n")
}

// Pad appends spaces until the text is that many terminal columns wide.
func Pad(text string, columns int) string {
	if n := columns - ansi.StringWidth(text); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}

// Plural returns a count with its noun: "1 call", "2 calls".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// JSON returns a JSON document, or text that quotes JSON, for people: see rawjson.WithoutHTML.
func JSON[T ~string | ~[]byte](document T) string {
	return string(rawjson.WithoutHTML([]byte(document)))
}
