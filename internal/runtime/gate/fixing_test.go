package gate

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/corpus"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Fix leaves a program that compiles unchanged, whatever is known about its value. The exceptions are files that it
// reads as text, and a nil list that it returns where a list or an object is declared.
func TestFixLeavesPrograms(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for name, source := range goodPrograms(t) {
		if _, r := g.Check(source); r != nil {
			continue
		}
		for _, returns := range []string{"", "array", "object"} {
			fixed := g.Fix(source, report.Terms{Returns: returns})
			lists := slices.DeleteFunc(slices.Clone(fixed.Fixes), func(f report.Fix) bool {
				return f.Text != "the file is read as text" && (returns == "" ||
					!strings.Contains(f.Text, "an empty list is no nil"))
			})
			if len(lists) < len(fixed.Fixes) || len(fixed.Faults) > 0 ||
				(fixed.Text == source) != (fixed.Fixes == nil) {
				t.Errorf("%s, which returns %q, is changed: %v, refused: %v", name, returns, fixed.Fixes, fixed.Faults)
			}
			if _, r := g.Check(fixed.Text); r != nil {
				t.Errorf("%s, which returns %q, is refused: %v", name, returns, r)
			}
		}
	}
}

// Even where a list or an object is declared, Fix leaves a nil list that the program itself compares with nil, bytes,
// which are a string in JSON, and the JSON of a variable that changes afterwards.
func TestFixLeavesValues(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for name, source := range map[string]string{
		"nil first": program("", "",
			`var best []int; for i := range 3 { if nil == best { best = make([]int, i) } }; return best, nil`),
		"found": program("regexp", "",
			`l := regexp.MustCompile("a").FindAllString("b", -1); if l == nil { return "none", nil }; return l, nil`),
		"by a function": program("", "func none(l []int) bool { return l == nil }",
			`var l []int; if none(l) { l = append(l, 7) }; return l, nil`),
		"a byte of a table": program("", "", `table := [4]byte{1, 2, 3, 4}; return table[len(call.Args)], nil`),
		"a byte of a sum": program("crypto/sha256", "",
			`sum := sha256.Sum256([]byte(call.Method)); b := sum[:]; return b[0], nil`),
		"bytes": program("", "", `var b []byte; return map[string]any{"b": b}, nil`),
		"JSON made by a function": program("encoding/json", "var n = 0\nfunc next() []int { n++; return []int{n} }",
			`b, err := json.Marshal(next()); if err != nil { return nil, err }; return string(b), nil`),
		"JSON, then a function": program("encoding/json", "",
			`m := map[string]any{"a": 1}; bad := func() bool { m["a"] = 2; return false }; b, err := json.Marshal(m); if err != nil || bad() { return nil, err }; return string(b), nil`),
		"JSON before a change": program("encoding/json", "",
			`m := map[string]any{"a": 1}; defer delete(m, "a"); b, err := json.Marshal(m); if err != nil { return nil, err }; return string(b), nil`),
	} {
		for _, returns := range []string{"array", "object"} {
			if fixed := g.Fix(source, report.Terms{Returns: returns}); fixed.Text != source || len(fixed.Faults) > 0 {
				t.Errorf("%s: changed: %v, refused: %v", name, fixed.Fixes, fixed.Faults)
			}
		}
	}
}

// A file stays bytes where the program may need them.
func TestFixLeavesBytes(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for name, source := range map[string]string{
		"what gzip has packed": program("compress/gzip encoding/csv", "",
			`in, err := call.Open(call.Arg(0, "f")); if err != nil { return nil, err }; z, err := gzip.NewReader(in); if err != nil { return nil, err }; rows, err := csv.NewReader(z).ReadAll(); return rows, err`),
		"a digest": program("crypto/sha256", "",
			`b, err := call.ReadFile(call.Arg(0, "f")); if err != nil { return nil, err }; return sha256.Sum256(b), nil`),
		"a digest of the text": program("crypto/sha256", "",
			`b, err := call.ReadFile(call.Arg(0, "f")); if err != nil { return nil, err }; text := string(b); return []any{text, sha256.Sum256([]byte(text))}, nil`),
		"a size": program("", "",
			`b, err := call.ReadFile(call.Arg(0, "f")); if err != nil { return nil, err }; return []any{len(b), string(b)}, nil`),
		"each byte": program("", "",
			`b, err := call.ReadFile(call.Arg(0, "f")); if err != nil { return nil, err }; var text []rune; for _, c := range b { text = append(text, rune(c)) }; return string(text), nil`),
		"base64": program("encoding/base64", "",
			`b, err := call.ReadFile(call.Arg(0, "f")); if err != nil { return nil, err }; return base64.StdEncoding.EncodeToString(b), nil`),
		"a signature": program("", "",
			`b, err := call.ReadFile(call.Arg(0, "f")); if err != nil { return nil, err }; if string(b[:2]) == "PK" { return nil, nil }; return string(b), nil`),
		"decoded": program("", "",
			`b, err := call.ReadFile(call.Arg(0, "f")); if err != nil { return nil, err }; text, err := call.DecodeText(b); return text, err`),
		"a reader that goes on": program("io", "func open(call *recurgent.Call) (io.Reader, error) { in, err := call.Open(call.Args[0]); return in, err }",
			`in, err := open(call); if err != nil { return nil, err }; b, err := io.ReadAll(in); return string(b), err`),
		"a copy": program("io", "",
			`in, err := call.Open(call.Arg(0, "f")); if err != nil { return nil, err }; out, err := call.Create("a", "b"); if err != nil { return nil, err }; if _, err := io.Copy(out, in); err != nil { return nil, err }; return out, out.Close()`),
		"two readers": program("bufio compress/gzip", "",
			`in, err := call.Open(call.Arg(0, "f")); if err != nil { return nil, err }; br := bufio.NewReader(in); if first, _ := br.Peek(2); len(first) == 2 { z, err := gzip.NewReader(br); return z != nil, err }; line, err := br.ReadString(10); return line, err`),
		"a function of bytes": program("io", "func size(r io.Reader) int { p := make([]byte, 9); n, _ := r.Read(p); return n }",
			`in, err := call.Open(call.Arg(0, "f")); if err != nil { return nil, err }; return size(in), nil`),
	} {
		if fixed := g.Fix(source, report.Terms{}); fixed.Text != source {
			t.Errorf("%s: changed: %v", name, fixed.Fixes)
		}
	}
}

// Writers that are flushed, or may be by others, are not refused.
func TestFixLeavesWriters(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	const create = `f, err := call.Create("a", "b"); if err != nil { return nil, err }; `
	for name, source := range map[string]string{
		"flushed": program("encoding/csv", "",
			create+`w := csv.NewWriter(f); if err := w.Write(nil); err != nil { return nil, err }; w.Flush(); return f, f.Close()`),
		"all at once": program("encoding/csv", "",
			create+`w := csv.NewWriter(f); if err := w.WriteAll(nil); err != nil { return nil, err }; return f, f.Close()`),
		"a file at the end": program("encoding/csv", "",
			create+`defer f.Close(); w := csv.NewWriter(f); defer w.Flush(); if err := w.Write(nil); err != nil { return nil, err }; return f.Ref(), nil`),
		"by a function": program("bufio", "func end(w *bufio.Writer) { _ = w.Flush() }",
			create+`w := bufio.NewWriter(f); _, _ = w.WriteString("a"); end(w); return f, f.Close()`),
		"of a list": program("encoding/csv", "",
			create+`l := map[string]*csv.Writer{}; w := csv.NewWriter(f); l["a"] = w; for _, w := range l { w.Flush() }; return f, f.Close()`),
		"in a function of its own": program("encoding/csv strings", "",
			`var b strings.Builder; func() { w := csv.NewWriter(&b); defer w.Flush(); _ = w.Write(nil) }(); return b.String(), nil`),
	} {
		if fixed := g.Fix(source, report.Terms{}); len(fixed.Faults) > 0 {
			t.Errorf("%s: refused: %v", name, fixed.Faults)
		}
	}
}

// goodPrograms returns the programs of other tests, by name.
func goodPrograms(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	recorded, err := filepath.Glob("diff/testdata/recorded/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range recorded {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	fence := regexp.MustCompile("(?s)```go\n(.*?)```")
	for _, name := range []string{"before", "after", "files", "pages"} {
		a, err := txtar.ParseFile("../../../test/e2e/tools/testdata/answers-" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if g := fence.FindSubmatch(f.Data); g != nil {
				all[name+" "+f.Name] = string(g[1])
			}
		}
	}
	written, err := corpus.Read("diff/testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range written {
		all[p.Name] = p.Source
	}
	if len(all) < 400 {
		t.Fatalf("%d programs", len(all))
	}
	return all
}

// Ambiguous faults are left to the model, and values that the program creates do not count as JSON.
func TestFixLeavesAmbiguity(t *testing.T) {
	t.Parallel()
	const head = "package tool\n\nimport \"recurgent\"\n\n"
	g := newGate(t)
	for name, c := range map[string]struct {
		source string
		runs   bool // the gate lets it run unchanged
	}{
		"ints of a heap": {program("container/heap",
			"type h []int\nfunc (x h) Len() int { return len(x) }\nfunc (x h) Less(i, j int) bool { return x[i] < x[j] }\nfunc (x h) Swap(i, j int) { x[i], x[j] = x[j], x[i] }\nfunc (x *h) Push(v any) { *x = append(*x, v.(int)) }\nfunc (x *h) Pop() any { v := (*x)[0]; *x = (*x)[1:]; return v }", `q := &h{}; heap.Push(q, 1); return heap.Pop(q).(int), nil`), true},
		"ints of a list": {program("container/list", "",
			`l := list.New(); l.PushBack(1); return l.Front().Value.(int), nil`), true},
		"values of its own": {program("", "",
			`var stack []any; stack = append(stack, 1, 2.0); if n, ok := stack[1].(int); ok { return n, nil }; return "float", nil`), true},
		"mixed values": {program("",
			"func kind(v any) string { if _, ok := v.(int); ok { return \"int\" }; return \"other\" }",
			`return kind(2.0) + kind(call.Arg(0, "n")), nil`), true},
		"digits, or another value": {program("encoding/json fmt", "",
			`if n, ok := call.Arg(0, "n").(json.Number); ok { return n.String(), nil }; return fmt.Sprint(call.Arg(0, "n")), nil`), true},
		"both kinds of numbers": {program("", "",
			`v := call.Arg(0, "n"); if f, ok := v.(float64); ok { return f, nil }; n, ok := v.(int); return []any{n, ok}, nil`), true},
		"both cases": {program("", "",
			`switch v := call.Arg(0, "n").(type) { case int: return v, nil; case float64: return int(v), nil }`), true},
		"the default takes floats": {program("", "",
			`switch v := call.Arg(0, "n").(type) { case int: return v, nil; default: f, _ := v.(float64); return f, nil }`), true},
		"an error's type": {program("errors", "type e struct{}\nfunc (e) Error() string { return \"\" }",
			`var err error = e{}; x, ok := err.(e); return []any{x, ok, errors.New("")}, nil`), true},
		"a null that is meant": {program("fmt", "", `fmt.Println("debug"); return len(call.Args), nil`), true},
		"printed with words":   {program("fmt", "", `fmt.Printf("%d days\n", len(call.Args))`), true},
		"a nil map that is checked": {program("", "",
			`var m map[string]int; if m == nil { return 0, nil }; m["a"] = 1; return m, nil`), true},
		"a nil map as a value": {program("", "",
			`var errs map[string]any; if len(call.Args) > 1 { errs["s"] = 1 }; return map[string]any{"errors": errs}, nil`), true},
		"a nil map by a function": {program("", "func empty(m map[string]int) bool { return m == nil }",
			`var m map[string]int; e := empty(m); if !e { m["a"] = 1 }; return e, nil`), true},
		"an error and its cause": {program("errors fmt",
			"const format = \"x: %w\"\nvar cause = errors.New(\"c\")\nfunc read(c *recurgent.Call) error { if _, ok := c.Arg(0, \"s\").(string); !ok { return fmt.Errorf(format, cause) }; return nil }", `return errors.Is(read(call), cause), nil`), true},
		"a table, not an argument": {program("errors", "var table = []int{1}",
			`n, ok := call.Arg(0, "n").(float64); if !ok || len(table) == 0 { return nil, errors.New("no table") }; return n, nil`), true},
		"an int in an object": {program("fmt", "",
			`m := map[string]any{"a": 1.5}; m["id"] = 12345678; sum := 0.0; for _, k := range []string{"a"} { sum += m[k].(float64) }; return fmt.Sprint(m["id"], sum), nil`), true},
		"a message that is read": {program("errors strings",
			"func find() error { return errors.New(\"not_found: no key\") }",
			`if strings.HasPrefix(find().Error(), "not_found") { return "default", nil }`), true},
		"comments of good programs": {program("", "",
			"// Todo items are kept in the session's memory.\n// ... then the result is rounded\n// Leave other characters unchanged.\n// The rest of the line goes here, as before.\n// placeholder for an empty cell\nreturn 1, nil"), true},
		"comments on code": {program("", "",
			"// To implement this efficiently, sums are kept.\n// We implement it in one pass.\n\n// The rest of the code is digits.\n\n// TODO: handle leap seconds\n\n// The actual logic here is a table.\nreturn 1, nil"), true},
		"a decoder of its own": {program("",
			"type pair struct{ a, b int }\ntype codec struct{}\nfunc (codec) Decode(s string, p *pair) { *p = pair{len(s), 2} }", `var p pair; codec{}.Decode("abc", &p); return p.a, nil`), true},
		"a field filled by a text": {program("encoding/json",
			"type tag struct{ name string }\nfunc (t *tag) UnmarshalText(b []byte) error { *t = tag{string(b)}; return nil }", `var l []tag; if err := json.Unmarshal([]byte("[\"a\"]"), &l); err != nil { return nil, err }; return l[0].name, nil`), true},
		"the message of a failure": {program("fmt", "",
			`n := call.Arg(0, "n").(float64); if n > 1 { return nil, recurgent.Fail("not_found", fmt.Sprintf("no %d", n)) }; if n < 0 { panic(fmt.Sprintf("%d", n)) }; return n, nil`), true},
		"a format of its own": {program("fmt",
			"type money float64\nfunc (money) Format(s fmt.State, v rune) { fmt.Fprint(s, \"money\") }",
			`return fmt.Sprintf("%d", money(2)), nil`), true},
		"any of a constant": {program("", "",
			`n := 0; for _, v := range []any{call.Arg(0, "n"), any(1)} { if _, ok := v.(int); ok { n++ } }; return n, nil`), true},
		"a field by its name": {program("", "type box struct{ V any }",
			`var in box; if err := call.Bind(&in); err != nil { return nil, err }; own := []box{in, {V: 7}}; n := 0; for _, b := range own { if _, ok := b.V.(int); ok { n++ } }; return n, nil`), true},
		"a field by its place": {program("", "type box struct{ V any }",
			`var in box; if err := call.Bind(&in); err != nil { return nil, err }; own := []box{in, {7}}; n := 0; for _, b := range own { if _, ok := b.V.(int); ok { n++ } }; return n, nil`), true},
		"a field by its address": {program("", "type box struct{ V any }",
			`var in box; if err := call.Bind(&in); err != nil { return nil, err }; own := []box{in}; p := &own[0].V; *p = 7; n := 0; for _, b := range own { if _, ok := b.V.(int); ok { n++ } }; return n, nil`), true},
		"a field that is set": {program("", "type box struct{ V any }",
			`var in box; if err := call.Bind(&in); err != nil { return nil, err }; own := []box{in}; own[0].V = 7; n := 0; for _, b := range own { if _, ok := b.V.(int); ok { n++ } }; return n, nil`), true},
		"%d of its own number": {program("fmt", "",
			`m := map[string]any{"a": 1}; return fmt.Sprintf("%d", m["a"]), nil`), true},
		"a case of its own": {program("", "",
			`var v any = 1; if len(call.Args) > 0 { v = call.Arg(0, "n") }; switch v { case 1: return "own", nil }`),
			true},
		"a case of another value": {program("", "",
			`switch call.Arg(0, "n") { case call.Arg(1, "m"): return "same", nil; case 0: return "none", nil }`), true},
		"a case of a float64": {program("", "",
			`switch call.Arg(0, "n") { case 1.0: return "one", nil; case 2: return "int", nil }`), true},
		"names of packages": {program("",
			"type codec struct{}\nfunc (codec) Unmarshal(b []byte, v map[string]int) error { v[\"a\"] = 1; return nil }\ntype printer struct{}\nfunc (printer) Sprintf(f string, n float64) string { return f }", `json, fmt, m := codec{}, printer{}, map[string]int{}; if err := json.Unmarshal(nil, m); err != nil { return nil, err }; return fmt.Sprintf("%d", 2.5), nil`), true},
		"another entry": {head +
			"type step struct{}\n\nfunc (step) Run(call *recurgent.Call) (any, error) { return \"step\", nil }\n\nfunc Execute(call *recurgent.Call) (any, error) { return \"all\", nil }\n\nfunc Other(call *recurgent.Call) (any, error) { return step{}.Run(call) }\n", false},
		"two functions":              {"package tool\nfunc A(s string) string { return s }\nfunc B(s string) string { return s }\n", false},
		"a function without a value": {"package tool\nfunc A(s string) {}\n", false},
		"a byte and a character": {program("", "", `for _, r := range "é" { if r == "é"[0] { return 1, nil } }`),
			false},
		"an ok forgotten": {program("", "",
			`f := func() (int, bool) { return 1, true }; n := f(); return n, nil`), false},
		"nil alone":         {head + "func Run(call *recurgent.Call) (any, error) { return nil }\n", false},
		"two packages rand": {program("", "", `return rand.Float64(), nil`), false},
		"cut off": {head +
			"func Run(call *recurgent.Call) (any, error) {\n\tif len(call.Args) == 0 {\n\t\treturn 1", false},
		"files":               {program("os", "", `b, err := os.ReadFile("x"); return string(b), err`), false},
		"an unknown function": {program("strings", "", `return strings.Translate("a"), nil`), false},
		"an unknown method":   {program("", "", `return call.Translate("a"), nil`), false},
		"no value at the end": {head +
			"func Run(call *recurgent.Call) (any, error) {\n\tn := len(call.Args)\n\tn++\n}\n", false},
	} {
		fixed := g.Fix(c.source, report.Terms{})
		text, notes := fixed.Text, fixed.Fixes
		_, r := g.Check(text)
		if c.runs && (text != c.source || notes != nil) {
			t.Errorf("%s: changed: %v\n%s", name, notes, text)
		}
		if c.runs == (r != nil) || c.runs && len(fixed.Faults) > 0 {
			t.Errorf("%s: refused: %v %v\n%s", name, r, fixed.Faults, text)
		}
	}
}

// Whatever the text is, fixing ends, keeps a program that compiles compiling, and finds nothing more to repair in its
// own result.
func FuzzFix(f *testing.F) {
	for _, source := range goodPrograms(f) {
		if len(source) < 2000 {
			f.Add(source)
		}
	}
	weak, err := filepath.Glob("../../../test/e2e/tools/testdata/weak/*.txtar")
	if err != nil || len(weak) == 0 {
		f.Fatal("no programs of weak models", err)
	}
	for _, name := range weak {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, x := range a.Files {
			f.Add(string(x.Data))
		}
	}
	g, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	terms := report.Terms{Parameters: []report.Parameter{{Name: "text"}, {Name: "n", Optional: true}}, Returns: "array"}
	f.Fuzz(func(t *testing.T, source string) {
		_, before := g.Check(source)
		fixed := g.Fix(source, terms)
		text, notes := fixed.Text, fixed.Fixes
		if g.stuck {
			t.Fatal("a check did not end in its time: what follows would be refused unseen")
		}
		if (text == source) != (notes == nil) {
			t.Fatalf("changed %t, with the notes %v", text != source, notes)
		}
		for _, n := range notes {
			if n.Line < 1 || n.Line > 1+countLines(text) {
				t.Fatalf("line %d of %d", n.Line, countLines(text))
			}
		}
		if _, after := g.Check(text); before == nil && after != nil {
			t.Fatalf("compiled before it was fixed: %s\n%s", after.Message, text)
		}
	})
}

func countLines(s string) int { return strings.Count(s, "\n") }
