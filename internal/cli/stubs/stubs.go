// Package stubs writes typed wrappers of tools from their interfaces: a file of Python, TypeScript or Go with a class
// per role and a function per method. Equal interfaces give identical bytes.
//
// Names, descriptions and schemas come from models and programs and may be hostile. Names are reduced to identifiers of
// letters, digits and underscores. Other text appears only in string literals and one-line comments, escaped so that it
// cannot end them. The package knows nothing of daemons.
package stubs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// mark is in the first line of every file that Write writes. Files without it are not replaced.
const mark = "Written by recurgentd tools stubs"

// A Method describes a method that has a program.
type Method struct {
	Role, Name string
	Interface  *agent.Interface // nil means that any arguments are accepted
}

// A Language describes one output language.
type Language struct {
	File  string // file name
	print func(roles []role) []byte
}

// Languages returns the languages by the names of their flags.
func Languages() map[string]Language {
	return map[string]Language{"python": {"recurgent_tools.py", python},
		"typescript": {"recurgent_tools.ts", typescript}, "go": {"recurgent_tools.go", golang}}
}

// role is a role with its methods, sorted by name.
type role struct {
	name, id string
	methods  []method
}

type method struct {
	role, name string
	summary    string // one line of printable characters
	parameters []parameter
	open       bool
	returns    shape
}

type parameter struct {
	name        string
	description string
	required    bool
	shape       shape
}

// Print returns the wrappers in the language as source text.
func Print(l Language, methods []Method) []byte { return l.print(arrange(methods)) }

// ErrTaken means that a file with that name exists and was not written by Write.
var ErrTaken = errors.New("exists, but recurgentd tools stubs did not write it")

// Write writes the wrappers to a file in dir, which it creates if it is missing, and returns the file's path. It
// atomically replaces a file that an earlier Write wrote. For any other file it returns ErrTaken.
func Write(dir string, l Language, methods []Method) (string, error) {
	path := filepath.Join(dir, l.File)
	switch old, err := os.ReadFile(path); {
	case err == nil:
		first, _, _ := bytes.Cut(old, []byte("\n"))
		if !bytes.Contains(first, []byte(mark)) {
			return "", fmt.Errorf("%s %w", path, ErrTaken)
		}
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// In the same directory, so that the rename is atomic.
	f, err := os.CreateTemp(dir, l.File+".*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails harmlessly after the rename
	_, err = f.Write(Print(l, methods))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return "", err
	}
	return path, os.Rename(f.Name(), path)
}

// arrange sorts roles and methods, and assigns identifiers.
func arrange(methods []Method) []role {
	sorted := slices.SortedFunc(slices.Values(methods), func(a, b Method) int {
		return slices.Compare([]string{a.Role, a.Name}, []string{b.Role, b.Name})
	})
	var roles []role
	types := names{}
	for _, m := range sorted {
		if len(roles) == 0 || roles[len(roles)-1].name != m.Role {
			roles = append(roles, role{name: m.Role, id: types.take(camel(m.Role, "Role"))})
		}
		r := &roles[len(roles)-1]
		made := method{role: m.Role, name: m.Name, open: true}
		if f := m.Interface; f != nil {
			made.summary, made.open, made.returns = line(f.Summary), f.Open, shapeOf("", f.Returns)
			for _, p := range f.Parameters {
				s := shapeOf(p.Type, p.Schema)
				if p.Variadic && s.kind != kindList {
					s = shape{kind: kindList, item: &shape{}}
				}
				made.parameters = append(made.parameters, parameter{name: p.Name, description: line(p.Description),
					required: p.Required && !p.Variadic, shape: s})
			}
		}
		r.methods = append(r.methods, made)
	}
	return roles
}

// names holds the identifiers in use, ignoring case, because Go capitalizes exported names.
type names map[string]bool

// take returns the identifier and marks it as used. It appends a number if the identifier is taken.
func (n names) take(id string) string {
	made := id
	for i := 2; n[strings.ToLower(made)]; i++ {
		made = id + "_" + strconv.Itoa(i)
	}
	n[strings.ToLower(made)] = true
	return made
}

// words returns the runs of ASCII letters and digits in a name.
func words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
}

// camel returns the name in the form of a type: "to title case" becomes ToTitleCase. other replaces a name without
// letters, or precedes a digit.
func camel(name, other string) string {
	var b strings.Builder
	for _, w := range words(name) {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	if b.Len() == 0 || unicode.IsDigit(rune(b.String()[0])) {
		return other + b.String()
	}
	return b.String()
}

// snake returns the name in the form of a function or variable: "to title case" becomes to_title_case. other replaces a
// name without letters, or precedes a digit.
func snake(name, other string, reserved []string) string {
	id := strings.Join(words(name), "_")
	switch {
	case id == "":
		return other
	case unicode.IsDigit(rune(id[0])):
		return other + "_" + id
	case slices.Contains(reserved, id):
		return id + "_"
	}
	return id
}

// line returns a text as one line of printable characters.
func line(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r) ||
			r == unicode.ReplacementChar || unicode.IsSpace(r)
	}), " ")
}

// quote returns an ASCII string literal for Python and Go.
func quote(text string) string { return literal(text, `\U%08x`) }

// literal returns an ASCII string literal. wide is the format of characters beyond U+FFFF; other escapes are the same
// in Python, JavaScript and Go.
func literal(text, wide string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text { // invalid UTF-8 gives U+FFFD
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, wide, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String() + `"`
}
