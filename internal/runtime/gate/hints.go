package gate

import (
	"fmt"
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/lazy"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// importHint suggests a replacement for a package that is not allowed.
func importHint(path string) string {
	base, _, _ := strings.Cut(path, "/")
	for _, name := range []string{path, base} {
		for _, refused := range allow.Refused() {
			if refused.Name == name {
				return refused.Instead
			}
		}
	}
	switch {
	case strings.HasSuffix(path, "goquery"), strings.HasPrefix(path, "golang.org/x/net/html"),
		strings.HasSuffix(path, "/cascadia"), strings.HasSuffix(path, "/htmlquery"), strings.Contains(path, "gocolly"),
		strings.HasSuffix(path, "/soup"):
		return fmt.Sprintf("Import %q: doc, err := html.Parse(page), then doc.Find(selector) with Each, Text, Attr and others as in goquery, and Table, Records and Links.", allow.Page)
	case path == "C":
		return "Write it in Go."
	case strings.HasSuffix(path, "/"+allow.Host):
		return fmt.Sprintf("Import %q.", allow.Host)
	case strings.Contains(base, "."):
		return "Only packages of the standard library are available: write what you need of it."
	}
	return "Use the packages that the instructions list."
}

// syntaxHint guesses why a text is not Go, and suggests a correction.
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
	case packages == 1 && strings.HasPrefix(start, "package ") && strings.Count(source, "\n") < 3 &&
		strings.Contains(source, `\n`):
		return `Submit Go with line breaks, not with the two characters \n in their place.`
	case packages == 0 && (strings.HasPrefix(start, "import") || strings.HasPrefix(start, "func ") ||
		strings.HasPrefix(start, "type ")):
		return "Begin the file with: package tool"
	}
	if foreignLoop().MatchString(source) {
		return "Go has no for ... in: " + loopHint
	}
	return "Submit one complete Go file in package tool."
}

// loopHint lists the loops of Go.
const loopHint = "for i, x := range list goes over a list, for k, v := range m over a map in the order of its keys, for i := a; i < b; i++ over numbers."

// foreignLoop matches a loop of another language.
var foreignLoop = lazy.Regexp(`(?m)^[ \t]*for\b[^=;\n]*[ \t]in[ \t][^=;\n]*\{[ \t\r]*$`)

// hintFor returns a hint for a type error, or "" if the message is clear by itself, and the type of the refusal.
func (c *check) hintFor(e types.Error) (hint, kind string) {
	message := plainMessage(e)
	if what, ok := strings.CutPrefix(message, "undefined: "); ok {
		pkg, name, selected := strings.Cut(what, ".")
		if !selected {
			return c.packageNameHint(pkg)
		}
		if p, ok := c.imported(pkg); ok && !p.Shows(name) && c.gate.lib.has(p.Path, name) {
			return unavailable(p, name), dependencyPolicy
		}
		if hint = knownHint(message); hint == "" {
			hint = c.memberHint(pkg, name)
		}
		return hint, invalidCode
	}
	if hint = c.hostHint(message); hint == "" {
		hint = knownHint(message)
	}
	if hint == "" {
		hint = selectionHint(message)
	}
	if hint == "" {
		hint = c.libraryHint(e)
	}
	return hint, invalidCode
}

// knownHint returns the hint of the first errorHint that matches the message, or "".
func knownHint(message string) string {
	for _, h := range errorHints() {
		if h.about.MatchString(message) {
			return h.hint
		}
	}
	return ""
}

// An errorHint is a hint for the type errors whose message matches a pattern.
type errorHint struct {
	about *regexp.Regexp
	hint  string
}

// errorHints lists hints with the patterns of messages. The first match counts, so more specific patterns come first.
var errorHints = sync.OnceValue(func() []errorHint {
	return []errorHint{
		{regexp.MustCompile(`argument to json\.Unmarshal`),
			"Arguments are decoded already: assert them, or have call.Bind(&v) fill a struct with them."},
		{regexp.MustCompile(`cannot convert ".*" \(untyped string constant\) to type int`),
			`call.Args is a list. An argument is read by its place and name: call.Arg(0, "name").`},
		{regexp.MustCompile(`cannot indirect`), "Go has no **: math.Pow(a, b) of float64."},
		{regexp.MustCompile(`call to math\.Round|undefined: recurgent\.Round`),
			"To 2 places: math.Round(x*100) / 100."},
		{regexp.MustCompile(`call to strconv\.FormatFloat`),
			"strconv.FormatFloat(f, 'f', 1, 64), or fmt.Sprintf(\"%.1f\", f)."},
		{regexp.MustCompile(`call to strconv\.ParseFloat`), "f, err := strconv.ParseFloat(s, 64)."},
		{regexp.MustCompile(`in single-value context`),
			"Take both results before: v, err := f(), then if err != nil { return nil, err }, then use v."},
		{regexp.MustCompile(`time\.Duration`),
			"A number of minutes is time.Duration(n) * time.Minute; d.Minutes() is a float64."},
		{regexp.MustCompile(`mismatched types .*(int|float64).*string|mismatched types .*string.*(int|float64)`),
			"A number's text is strconv.Itoa(n), or fmt.Sprint(f)."},
		{regexp.MustCompile(`type int\) as string value`),
			"strconv.Itoa(n) is a number's text. for i := range list goes over places, for _, x := range list over items."},
		{regexp.MustCompile(`type string\) as (rune|byte) value`), "The first character of a text is []rune(s)[0]."},
		{regexp.MustCompile(`type \[\](any|interface \{\}|interface\{\})\) as \[\]|as \[\](any|interface ?\{\}) value`),
			"A []any is no []string: make both lists []any, or convert the items in a loop."},
		{regexp.MustCompile(`cannot use nil as \S+ value in return statement`),
			"A function that may fail returns its value and an error: func f(s string) (T, error), then v, err := f(s)."},
		{regexp.MustCompile(`operator % not defined on .*float64`),
			"Remainders are of integers: n := int(f) of a whole f first, then n / 60 and n % 60."},
		{regexp.MustCompile(`need type assertion|not defined on .* of type (?:any|interface ?\{\})|of interface type any|mismatched types any|any is interface with no methods|non-numeric type any|variable of type any|not defined on interface`),
			`Values of arguments, of the context and of decoded JSON are any; assert them first. JSON numbers are float64: f, ok := call.Arg(1, "n").(float64), then int(f). Lists are []any, objects map[string]any.`},
		{regexp.MustCompile(`call to strings\.Replace\b`),
			"strings.ReplaceAll(s, old, new) replaces all; strings.Replace(s, old, new, 1) the first."},
		{regexp.MustCompile(`^append\(.* is not used$`), "append returns the list: list = append(list, x)."},
		{regexp.MustCompile(`^(sort|slices)\..*\(no value\) used as value`),
			"It changes the list that it is given: call it as a statement, then use the list."},
		{regexp.MustCompile(`\(no value\) used as value`),
			"The function returns nothing: call it as a statement, then use what it has changed."},
		{regexp.MustCompile(`operator - not defined on .*string`),
			"The number of a digit is int(c - '0') of a character c, and strconv.Atoi(s) that of a text."},
		{regexp.MustCompile(`^cannot assign to .*neither addressable nor a map index expression`),
			"A text cannot be changed in place: b := []byte(s), then b[i] = '#', then string(b)."},
		{regexp.MustCompile(`does not satisfy ~\[\]`),
			"Functions of package slices take the list first: slices.Contains(list, x). In a text: strings.Contains(s, x)."},
		{regexp.MustCompile(`has no field or method each\)`), loopHint},
		{regexp.MustCompile(`type \[\].* has no field or method`),
			"A list has no methods: list = append(list, x), len(list), list[i]."},
		{regexp.MustCompile(`type string has no field or method`),
			"A text has no methods: use package strings, len(s) for bytes, utf8.RuneCountInString(s) for characters."},
		{regexp.MustCompile(`cannot assign to struct field .* in map`),
			"Take the struct out, change it, put it back: v := m[k]; v.f++; m[k] = v."},
		{regexp.MustCompile(`^non-boolean condition`),
			"Conditions are bool: n != 0, s != \"\", len(list) > 0, x != nil."},
		{regexp.MustCompile(`mismatched types (float64|int)\b.*\b(int|float64)\)`),
			"Convert one of them: float64(n), or int(f) of a whole f."},
		{regexp.MustCompile(`must be integer|operator % not defined on .*float64|type float64\) as int\b`),
			"Convert it: int(f), where f is whole."},
		{regexp.MustCompile(`type int\) as float64`), "Convert it: float64(n)."},
		{regexp.MustCompile(`mismatched types.*(rune|byte).*string|mismatched types.*string.*(rune|byte)|type (rune|byte)\) as string`), "string(r) is a character as a text; 'a' is a character, \"a\" a text."},
		{regexp.MustCompile(`^assignment mismatch: 1 variable but .* returns 2 values`),
			"Take both results: v, err := f(), then if err != nil { return nil, err }."},
		{regexp.MustCompile(`return values|^missing return`),
			"Run ends with return value, nil, or with return nil, recurgent.Fail(type, message)."},
		{regexp.MustCompile(`as error value`), "An error is recurgent.Fail(type, message)."},
	}
})

// hostHint lists the members of a type of the host package if the message reports a member that the type lacks.
// Otherwise it returns "".
func (c *check) hostHint(message string) string {
	g := hostMember.FindStringSubmatch(message)
	if g == nil {
		return ""
	}
	host, err := c.gate.lib.load(allow.Host)
	if err != nil {
		return ""
	}
	named, ok := host.Scope().Lookup(g[1]).Type().(*types.Named)
	if !ok {
		return ""
	}
	var names []string
	if s, ok := named.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Exported() {
				names = append(names, f.Name())
			}
		}
	}
	for m := range named.Methods() {
		if m.Exported() {
			names = append(names, m.Name())
		}
	}
	hint := "A " + g[1] + " has " + strings.Join(names, ", ") + "."
	if g[1] == "Call" {
		hint += ` An argument is read by its place and name: n, ok := call.Arg(0, "n").(float64); texts are string, lists []any, objects map[string]any. The session's memory is the map call.Context.`
	}
	return hint
}

// hostMember matches the message about a missing member of a type of the host package.
var hostMember = regexp.MustCompile(
	`type \*?recurgent\.(Call|Response|Outcome|Tool|Record|Request) has no field or method`)

// memberHint lists the names of a package that lacks the name that was selected: all names for our packages, otherwise
// those most like it, or the functions of a small package, with their signatures. It returns "" if there are none.
func (c *check) memberHint(pkg, name string) string {
	if hint := c.pageHint(pkg); hint != "" {
		return hint
	}
	for _, spec := range c.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if c.importName(spec) != pkg {
			continue
		}
		names, _ := fixing{Gate: c.gate}.Names(path)
		if path == allow.Host {
			return fmt.Sprintf("Package %s has %s.", pkg, strings.Join(names, ", "))
		}
		if near := c.nearMembers(path, names, name); len(near) > 0 {
			return fmt.Sprintf("Package %s has %s.", pkg, described(near))
		}
	}
	return ""
}

// packageNameHint returns the hint and refusal type for an undefined name that may be a package's.
func (c *check) packageNameHint(name string) (hint, kind string) {
	if name == "lt" || name == "gt" || name == "amp" {
		return syntaxHint(c.source), invalidCode
	}
	var paths []string
	for path, p := range c.gate.lib.allowed {
		if p.Name() == name {
			paths = append(paths, fmt.Sprintf("%q", path))
		}
	}
	if len(paths) > 1 {
		slices.Sort(paths)
		return "Import the one that you mean of " + strings.Join(paths, ", ") + ".", invalidCode
	}
	if len(paths) == 1 { // the package that the name means lacks a name that the program uses
		return c.lackHint(name)
	}
	for _, p := range allow.Refused() {
		if p.Name == name || strings.HasSuffix(p.Name, "/"+name) {
			return fmt.Sprintf("Package %q is not available to programs. %s", p.Name, p.Instead), dependencyPolicy
		}
	}
	if c.calls(name) {
		return "The program is one whole file: declare func " + name + " in it.", invalidCode
	}
	return "", invalidCode
}

// lackHint returns the hint and the refusal type for the first name that the program selects from an allowed package,
// which it does not import, and that programs cannot use.
func (c *check) lackHint(pkg string) (hint, kind string) {
	kind = invalidCode
	ast.Inspect(c.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || hint != "" {
			return hint == ""
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg {
			for _, p := range c.gate.lib.allowed {
				if p.Name() == pkg && !p.Shows(s.Sel.Name) && c.gate.lib.has(p.Path, s.Sel.Name) {
					hint, kind = unavailable(p, s.Sel.Name), dependencyPolicy
				}
			}
		}
		return true
	})
	return hint, kind
}

// unavailable returns the hint for a name of an allowed package that programs cannot use.
func unavailable(p allow.Package, name string) string {
	return fmt.Sprintf("%s.%s is not available to programs. %s", p.Name(), name, p.Instead(name))
}

// calls reports whether the program calls a function of that name.
func (c *check) calls(name string) bool {
	found := false
	ast.Inspect(c.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok {
			id, named := call.Fun.(*ast.Ident)
			found = found || named && id.Name == name
		}
		return !found
	})
	return found
}

// imported returns the package that the file imports under a name.
func (c *check) imported(name string) (allow.Package, bool) {
	for _, spec := range c.file.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); c.importName(spec) == name {
			p, ok := c.gate.lib.allowed[path]
			return p, ok
		}
	}
	return allow.Package{}, false
}

// plainMessage returns a type checker's message with our packages under the names that programs use.
func plainMessage(e types.Error) string {
	return strings.NewReplacer(`"`+allow.HostPath+`"`, allow.Host, `"`+allow.TruePath(allow.Page)+`"`,
		"html").Replace(strings.TrimSpace(e.Msg))
}
