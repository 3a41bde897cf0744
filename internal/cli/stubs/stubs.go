// Package stubs writes typed wrappers of tools from their interfaces: a file of Python, TypeScript or Go with a class for each role and a function
// for each method. The same interfaces make the same bytes.
//
// Names, descriptions and schemas are hostile: models and programs write them. Names become identifiers of letters, digits and underscores, and what
// stands for itself is a string literal or a comment of one line, in which no character ends either.
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

// mark is in the first line of every file that Write writes: others are not replaced.
const mark = "Written by recurgentd tools stubs"

// A Method is one that has a program.
type Method struct {
	Role, Name string
	Interface  *agent.Interface // nil: it may be called in any way
}

// A Language is what wrappers are written in.
type Language struct {
	File  string // the name of the file
	print func(roles []role) []byte
}

// Languages by the name of their flag.
func Languages() map[string]Language {
	return map[string]Language{"python": {"recurgent_tools.py", python},
		"typescript": {"recurgent_tools.ts", typescript}, "go": {"recurgent_tools.go", golang}}
}

// role is one with its methods, sorted by name.
type role struct {
	name, id string
	methods  []method
}

type method struct {
	role, name string
	summary    string // one line, without characters that are not printed
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

// Print returns the wrappers in the language.
func Print(l Language, methods []Method) []byte { return l.print(arrange(methods)) }

// ErrTaken reports a file of that name that something else wrote.
var ErrTaken = errors.New("is there, and was not written by recurgentd tools stubs")

// Write writes the wrappers below the directory, which it makes where it is missing, and returns the file's path. A file that an earlier Write
// wrote is replaced, whole; any other is ErrTaken.
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
	f, err := os.CreateTemp(dir, l.File+".*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after the rename there is nothing
	_, err = f.Write(Print(l, methods))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return "", err
	}
	return path, os.Rename(f.Name(), path)
}

// arrange sorts roles and methods, and finds their identifiers.
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

// names are the identifiers that are taken, without case, since Go writes the first letter of what is exported large.
type names map[string]bool

// take returns the identifier, with a number behind it where it is taken.
func (n names) take(id string) string {
	made := id
	for i := 2; n[strings.ToLower(made)]; i++ {
		made = id + "_" + strconv.Itoa(i)
	}
	n[strings.ToLower(made)] = true
	return made
}

// words are the runs of ASCII letters and digits in a name.
func words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
}

// camel returns the name as that of a type: "to title case" is ToTitleCase. other stands for one without a letter.
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

// snake returns the name as that of a function or a variable: "to title case" is to_title_case.
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

// line returns a text as one line of characters that are printed.
func line(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r) ||
			r == unicode.ReplacementChar || unicode.IsSpace(r)
	}), " ")
}

// quote returns a string literal of ASCII characters for Python and Go.
func quote(text string) string { return literal(text, `\U%08x`) }

// literal returns a string literal of ASCII characters, in which characters beyond U+FFFF stand in that format; all else Python, JavaScript and Go
// write alike.
func literal(text, wide string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text { // what is no UTF-8 is U+FFFD
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
