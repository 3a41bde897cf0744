package reply

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// A rank measures how much of a program a text is.
type rank int

const (
	rankNone   rank = iota // not Go
	rankPart               // a part of Go source
	rankHelper             // parses and has functions, but no Run
	rankKeeps              // not Go, but the statement that the program is kept
	rankBroken             // has Run but does not parse
	rankWhole              // parses and has Run
)

func (r rank) parses() bool { return r == rankWhole || r == rankHelper }

// Bounds of a text that is parsed as Go: its bytes, and the brackets that are open at once. Within them the parser's
// stack takes at most 64 MB, even for a hostile text. Longer programs are refused elsewhere.
const (
	maxSource   = 256 << 10
	maxBrackets = 1000
)

var (
	declaresRun = lazy.Regexp(`(?m)^[ \t]*func[ \t]+Run[ \t]*\(`)
	looksLikeGo = lazy.Regexp(`(?m)^[ \t]*(?:package[ \t]+\w+[ \t\r]*$|func[ \t]+[\w(])`)
	hasPackage  = lazy.Regexp(`(?m)^[ \t]*package[ \t]+\w+`)
)

// rankOf returns the rank of a text. A missing package clause does not matter, because the gate adds it.
func rankOf(source string) rank {
	if !looksLikeGo().MatchString(source) {
		return rankNone
	}
	file := parseGo(source)
	if file == nil && !hasPackage().MatchString(source) {
		file = parseGo("package tool;" + source)
	}
	if file != nil {
		return rankOfFile(file)
	}
	if severalFiles(source) {
		return rankWhole
	}
	switch {
	case !declaresRun().MatchString(source):
		return rankPart
	case len(source) > maxSource && beginsAsGo(source):
		return rankWhole // it will be refused for its length; a part of it would be another program
	}
	return rankBroken
}

// parseGo parses a Go file. It returns nil if the source does not parse or exceeds the bounds.
func parseGo(source string) *ast.File {
	if len(source) > maxSource || nesting(source) > maxBrackets {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	return file
}

// nesting returns how many brackets are open at once, including those in strings and comments.
func nesting(source string) int {
	open, most := 0, 0
	for i := range len(source) {
		switch source[i] {
		case '(', '[', '{':
			open++
			most = max(most, open)
		case ')', ']', '}':
			open = max(0, open-1)
		}
	}
	return most
}

// rankOfFile returns the rank of a file that parses. Functions of package main do not count as helpers.
func rankOfFile(file *ast.File) rank {
	out := rankPart
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		switch {
		case !ok || f.Recv != nil:
		case f.Name.Name == "Run":
			return rankWhole
		case file.Name.Name != "main":
			out = rankHelper
		}
	}
	return out
}

// A finder searches texts, and the texts within them, for programs, until its budget of work is spent.
type finder struct {
	work int  // remaining budget, in bytes examined
	keep bool // the answer may be that the program is kept
	kept bool // the answer stated that, whether or not it is allowed
}

// parsing is the cost of parsing a byte as Go, relative to examining it.
const parsing = 8

func newFinder(size int) *finder { return &finder{work: 64*size + 4<<20} }

func (f *finder) rank(source string) rank {
	f.work -= parsing * len(source)
	if f.work <= 0 {
		return rankNone
	}
	return rankOf(source)
}

// source returns the program that a string means: as it is, within a fence, or with a wrong number of escapes.
func (f *finder) source(t text, depth int) (code string, r rank) {
	code, r = f.unwrapped(t.value, depth)
	for _, alternative := range []func(text) string{
		func(t text) string { return t.keepQuotes() },
		func(t text) string { return unescape(t.raw, quoteEscapes) },
		func(t text) string { return t.raw },
	} {
		if r == rankWhole || t.style == styleRaw || !strings.Contains(t.raw, `\`) {
			break
		}
		if s, better := f.unwrapped(alternative(t), depth); better == rankWhole {
			code, r = s, better
		}
	}
	return code, r
}

// keepQuotes decodes a string in which \' belongs to the Go source.
func (t text) keepQuotes() string {
	return t.with(strings.ReplaceAll(t.raw, `\'`, `\\'`)).decode()
}

func (t text) with(raw string) text { return text{raw: raw, style: t.style} }

// unwrapped returns the program that a string is or wraps.
func (f *finder) unwrapped(s string, depth int) (code string, r rank) {
	code, r = s, f.rank(s)
	for range 3 {
		if r == rankWhole {
			break
		}
		if inner, ok := f.within(s, depth+1); ok && (inner.rank > r || inner.rank > rankNone && !beginsAsGo(s)) {
			return inner.code, inner.rank
		}
		next := unescape(s, jsonEscapes)
		if next == s {
			break
		}
		s = next
		if got := f.rank(s); got == rankWhole || r == rankNone && got > r {
			code, r = s, got
		}
	}
	return code, r
}

// within returns the program in a string that contains more than a program.
func (f *finder) within(s string, depth int) (candidate, bool) {
	if depth > maxNesting || f.work <= 0 {
		return candidate{}, false
	}
	return best(f.read(s, depth).candidates)
}

// goLine matches the beginning of a line at package level of a Go file.
var goLine = lazy.Regexp(
	`(?m)^(?:package[ \t]+\w+|import[ \t]*[("]|func[ \t]+[\w(]|type[ \t]+\w+|var[ \t]+[\w(]|const[ \t]+[\w(])`)

var packageClause = lazy.Regexp(`(?m)^package[ \t]+\w+[ \t\r]*$`)

// severalFiles reports whether a text is a program in several files, which the gate joins: all of them parse, exactly
// one has Run, and the others have helpers.
func severalFiles(source string) bool {
	clauses := packageClause().FindAllStringIndex(source, 9)
	if len(clauses) < 2 || len(clauses) > 8 {
		return false
	}
	begins := 0
	for i, c := range clauses {
		end := len(source)
		if i+1 < len(clauses) {
			end = clauses[i+1][0]
		}
		file := parseGo(source[c[0]:end])
		switch {
		case file == nil:
			return false
		case rankOfFile(file) == rankWhole:
			begins++
		case rankOfFile(file) != rankHelper || declaresMain().MatchString(source[c[0]:end]):
			return false
		}
	}
	return begins == 1
}

var declaresMain = lazy.Regexp(`(?m)^func[ \t]+main[ \t]*\(`)

// beginsAsGo reports whether the first line, apart from comments, is Go at package level.
func beginsAsGo(s string) bool {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			return goLine().MatchString(line)
		}
	}
	return false
}

// bare returns a program in a text without any mark: from the first line of Go to the last that makes it whole.
func (f *finder) bare(s string) (candidate, bool) {
	first := goLine().FindStringIndex(s)
	if p := hasPackage().FindStringIndex(s); p != nil {
		first = p
	}
	if first == nil {
		return candidate{}, false
	}
	from := commentsBefore(s, first[0])
	out := candidate{form: FormFence, at: from, end: len(s), open: true, code: strings.TrimSpace(s[from:])}
	out.rank = f.rank(out.code)
	for end, tries := len(s), 0; out.rank != rankWhole && tries < 6; tries++ {
		brace := strings.LastIndex(s[from:from+f.firstError(s[from:end])], "\n}")
		if brace < 0 {
			break
		}
		end = from + brace + 2
		if code := strings.TrimSpace(s[from:end]); f.rank(code) == rankWhole && !needs(code, s[:from]+s[end:]) {
			out.code, out.rank, out.end, out.open = code, rankWhole, end, false
		}
		end--
	}
	return out, out.rank > rankNone
}

// needs reports whether a program uses what is declared only in rest, the text that was cut off. Such a program is
// incomplete.
func needs(code, rest string) bool {
	var names []string
	for _, g := range declaration().FindAllStringSubmatch(rest, 100) {
		names = append(names, g[1]+g[2])
	}
	for _, g := range declarations().FindAllStringSubmatch(rest, 100) {
		for _, name := range groupedName().FindAllStringSubmatch(g[1], 100) {
			names = append(names, name[1])
		}
	}
	if len(names) == 0 {
		return false
	}
	lacks := unresolved(code)
	return slices.ContainsFunc(names, func(name string) bool { return lacks[name] })
}

var (
	declaration  = lazy.Regexp(`(?m)^(?:func[ \t]+(\w+)[ \t]*[(\[]|(?:var|const|type)[ \t]+(\w+))`)
	declarations = lazy.Regexp(`(?ms)^(?:var|const|type)[ \t]*\((.*?)^\)`)
	groupedName  = lazy.Regexp(`(?m)^[ \t]+(\w+)`)
)

// unresolved returns the names that a file uses and does not declare.
func unresolved(code string) map[string]bool {
	out := map[string]bool{}
	if len(code) > maxSource || nesting(code) > maxBrackets {
		return out
	}
	if !hasPackage().MatchString(code) {
		code = "package tool;" + code
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", code, 0)
	if err != nil {
		return out
	}
	for _, id := range file.Unresolved {
		out[id.Name] = true
	}
	return out
}

// firstError returns the offset at which a text stops being Go.
func (f *finder) firstError(s string) int {
	f.work -= parsing * len(s)
	if f.work <= 0 || len(s) > maxSource {
		return 0
	}
	before := ""
	if !hasPackage().MatchString(s) {
		before = "package tool;"
	}
	_, err := parser.ParseFile(token.NewFileSet(), "", before+s, parser.SkipObjectResolution)
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return len(s)
	}
	return min(max(list[0].Pos.Offset-len(before), 0), len(s))
}

// commentsBefore returns the start of the comment lines directly before at.
func commentsBefore(s string, at int) int {
	for at > 0 {
		begin := strings.LastIndexByte(s[:at-1], '\n') + 1
		if !strings.HasPrefix(strings.TrimSpace(s[begin:at]), "//") {
			break
		}
		at = begin
	}
	return at
}
