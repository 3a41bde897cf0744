package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/recurgentd/recurgentd/internal/cli/clitest"
)

// Spaces that somebody wrote stay; line breaks and tabs, with what surrounds them, become one.
func TestSpaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`initials("Ada  Lovelace")`: `initials("Ada  Lovelace")`,
		"  a \n\t  b  ": "a b", "a\r\n\n    b   c": "a b   c", " \n ": "", "": ""} {
		if got := Clean(text, 0); got != want {
			t.Errorf("Clean(%q) is %q, want %q", text, got, want)
		}
		if got := OneLine(text); got != want {
			t.Errorf("OneLine(%q) is %q, want %q", text, got, want)
		}
	}
}

// Ordinary text stays as it is, and escape sequences do not.
func TestVerbatim(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a\tb\r\nc\n": "a\tb\nc\n",
		"\ufeffsoft\u00adhyphen \U0001f468\u200d\U0001f469": "\ufeffsoft\u00adhyphen \U0001f468\u200d\U0001f469",
		"a\rb\x1b[31m\u009b\u202e\u2066\xff":                "a\ufffdb\ufffd[31m\ufffd\ufffd\ufffd\ufffd"} {
		if got := Verbatim(text); got != want {
			t.Errorf("Verbatim(%q) is %q, want %q", text, got, want)
		}
	}
}

// Untrusted text in a line stays within the line and its width.
func FuzzPlainText(f *testing.F) {
	for _, s := range clitest.HostileTexts {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, text string, columns int) {
		columns = 1 + max(0, columns%200)
		got := Clean(text, columns)
		if w := ansi.StringWidth(got); w > columns || len(got) > 40*columns {
			t.Errorf("%q in %d columns takes %d, %d bytes", text, columns, w, len(got))
		}
		for _, s := range []string{got, Cell(text)} {
			if strings.ContainsFunc(s, func(r rune) bool {
				return unicode.IsControl(r) || r != ' ' &&
					!unicode.IsPrint(r)
			}) || !utf8.ValidString(s) {
				t.Errorf("%q became %q", text, s)
			}
		}
		if s := Plain(text); strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) ||
			!utf8.ValidString(s) {
			t.Errorf("%q became %q", text, s)
		}
	})
}
