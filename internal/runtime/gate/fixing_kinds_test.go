package gate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// What has one reading is written as that, and said.
func TestFixKinds(t *testing.T) {
	t.Parallel()
	const head = "package tool\n\nimport \"recurgent\"\n\n"
	run := func(body string) string { return program("", "", body) }
	bare := func(body string) string { // a Run that ends as it says
		return head + "func Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n"
	}
	declared := report.Terms{Parameters: []report.Parameter{{Name: "text"}, {Name: "n", Optional: true}}, Returns: "array"}
	for _, c := range []struct {
		name, source string
		terms        report.Terms
		want         []string // parts of the text
	}{
		// Decoded JSON.
		{name: "a table", source: program("encoding/csv", "", `in, err := call.Open(call.Arg(0, "f")); if err != nil { return nil, err }; r := csv.NewReader(in); r.Comma = ';'; rows, err := r.ReadAll(); return rows, err`), want: []string{`in, err := call.OpenText(call.Arg(0, "f"))`}},
		{name: "XML", source: program("encoding/xml", "", `in, err := call.Open(call.Arg(0, "f")); if err != nil { return nil, err }; var v struct{ A string }; err = xml.NewDecoder(in).Decode(&v); return v.A, err`), want: []string{`in, err := call.OpenText(call.Arg(0, "f"))`}},
		{name: "a page", source: program("recurgent/html", "", `in, err := call.Open(call.Arg(0, "f")); if err != nil { return nil, err }; page, err := html.Parse(in); if err != nil { return nil, err }; return page.Text(), nil`), want: []string{`in, err := call.OpenText(call.Arg(0, "f"))`}},
		{name: "an int", source: run(`n := call.Arg(0, "n").(int); return n, nil`), want: []string{`recurgent.Must(call.Arg(0, "n"), 0).(int)`}},
		{name: "an int or not", source: run(`n, ok := call.Kwargs["n"].(int64); return []any{n, ok}, nil`), want: []string{`recurgent.Maybe(call.Kwargs["n"], int64(0)).(int64)`}},
		{name: "a list of the memory", source: run(`if l, ok := call.Context["l"].([]string); ok { return l, nil }`), want: []string{"error) {\n\tif call.Context[\"l\"] != nil {\n\t\tcall.Context[\"l\"] = recurgent.Held(call.Context[\"l\"], []string{})\n\t}\n"}},
		{name: "a counter of the memory", source: run(`m, ok := call.Context["m"].(map[string]int); if !ok { m = map[string]int{}; call.Context["m"] = m }; m["a"]++; return m["a"], nil`), want: []string{`call.Context["m"] = recurgent.Held(call.Context["m"], map[string]int{})`}},
		{name: "parts of the memory", source: run(`l := call.Context["l"].([][]int); t := l[1:]; t[0][0]++; call.Context["m"].(map[string]int)["n"]++; return t, nil`), want: []string{`recurgent.Held(call.Context["l"], [][]int{})`, `recurgent.Held(call.Context["m"], map[string]int{})`}},
		{name: "of the context alone", source: run(`return call.Context["n"].(int), nil`), want: []string{`recurgent.As(call.Context["n"], 0).(int)`}},
		{name: "an element", source: run(`for _, o := range call.Arg(0, "l").([]any) { m := o.(map[string]any); _ = m["n"].(int) }`), want: []string{`recurgent.Must(m["n"], 0).(int)`}},
		{name: "of another tool", source: run(`return call.Tool("t").Call("m").Value.([]int), nil`), want: []string{`recurgent.As(call.Tool("t").Call("m").Value, []int{}).([]int)`}},
		{name: "by way of a function", source: program("", "func whole(v any) int { n, ok := v.(int); if !ok { return -1 }; return n }", `return whole(call.Arg(0, "n")), nil`), want: []string{"recurgent.Maybe(v, 0).(int)"}},
		{name: "decoded by the program", source: program("encoding/json", "", `var v map[string]any; _ = json.Unmarshal([]byte("{}"), &v); return v["n"].(int), nil`), want: []string{`recurgent.As(v["n"], 0).(int)`}},
		{name: "bound by the program", source: run(`var in struct{ L []map[string]any }; if err := call.Bind(&in); err != nil { return nil, err }; for _, o := range in.L { if n, ok := o["n"].(int); ok { return n, nil } }`), want: []string{`recurgent.Maybe(o["n"], 0).(int)`}},
		{name: "%d of a value of JSON", source: program("fmt", "", `return fmt.Sprintf("%d items", call.Arg(0, "n")), nil`), want: []string{`recurgent.Must(call.Arg(0, "n"), 0).(int)`}},
		{name: "a switch", source: run(`switch v := call.Arg(0, "v").(type) { case int: return v, nil; case string: return v, nil }`), want: []string{`switch v := recurgent.Case(call.Arg(0, "v"), 0).(type)`}},
		{name: "an int or an error", source: bare("n, ok := call.Arg(0, \"n\").(int)\nif !ok || n < 1 { return nil, recurgent.Fail(\"a\", \"b\") }\nreturn n, nil"), want: []string{`recurgent.As(call.Arg(0, "n"), 0).(int)`}},
		{name: "arithmetic", source: run(`total := 0; for _, v := range call.Arg(0, "l").([]any) { total += v }; return total, nil`), want: []string{"total += recurgent.Must(v, 0).(int)"}},
		{name: "getters", source: run(`if v, ok := call.Int("a"); ok { return v, nil }; return call.GetInt("a", 2), nil`), want: []string{`recurgent.Maybe(call.Arg(0, "a"), 0).(int)`, `recurgent.Or(call.Arg(0, "a"), 2).(int)`}},
		{name: "getters with a place", source: run(`a := call.String(0); b, err := call.Float(1, "b"); if err != nil { return nil, err }; return []any{a, b}, nil`), want: []string{`recurgent.Must(call.Arg(0, "a"), "").(string)`, `recurgent.Must(call.Arg(1, "b"), 0.0).(float64), error(nil)`}},
		{name: "declared getters", terms: declared, source: run(`return []any{call.Number("n"), call.Args["text"]}, nil`), want: []string{`recurgent.Must(call.Arg(1, "n"), 0.0).(float64)`, `call.Arg(0, "text")`}},
		{name: "context methods", source: run(`n, ok := call.Context.Get("n").(float64); call.Context.Set("n", n+1); call.SetContext("x", 1); return ok, nil`),
			want: []string{`call.Context["n"].(float64)`, `call.Context["n"] = n + 1`, `call.Context["x"] = 1`}},
		{name: "compared with an int", source: run(`if call.Arg(0, "n") == 5 { return 1, nil }`), want: []string{`recurgent.As(call.Arg(0, "n"), 0) == 5`}},
		{name: "a case that is an int", source: run(`switch call.Arg(0, "n") { case 1: return "one", nil; case "x": return "x", nil }`), want: []string{`switch recurgent.As(call.Arg(0, "n"), 0) {`}},
		{name: "a list appended", source: run(`l := []string{"a"}; l = append(l, call.Arg(0, "l")...); return l, nil`), want: []string{`append(l, recurgent.Must(call.Arg(0, "l"), []string{}).([]string)...)`}},
		{name: "bytes beside a text", source: program("encoding/json", "", `b, err := json.Marshal(1); if err != nil { return nil, err }; return "n=" + b, nil`), want: []string{`"n=" + string(b)`}},
		{name: "as an argument", source: program("strings", "", `return strings.ToUpper(call.Arg(0, "s")), nil`), want: []string{`strings.ToUpper(recurgent.Must(call.Arg(0, "s"), "").(string))`}},
		{name: "range and index", source: run(`for _, o := range call.Arg(0, "l") { return o["name"], nil }`), want: []string{`range recurgent.Must(call.Arg(0, "l"), []any{}).([]any)`, `recurgent.Must(o, map[string]any{}).(map[string]any)["name"]`}},

		// The host package.
		{name: "a value that may be an error", source: head + "func Run(call *recurgent.Call) any { return recurgent.Fail(\"a\", \"b\") }\n", want: []string{"if err, failed := value.(error); failed {\n\t\treturn nil, err\n\t}"}},
		{name: "the call by value", source: head + "func Run(call recurgent.Call) (any, error) { call.Context = map[string]any{}; return 1, nil }\n", want: []string{"func Run(call *recurgent.Call) (any, error) {"}},
		{name: "another import path", source: strings.Replace(run("return 1, nil"), `"recurgent"`, `"github.com/recurgentd/recurgentd/pkg/recurgent"`, 1), want: []string{`import "recurgent"`}},
		{name: "another name of the host package", source: "package tool\nimport \"host\"\nfunc Run(call *host.Call) (any, error) { return 1, nil }\n", want: []string{`"recurgent"`}},
		{name: "by declared places", terms: declared, source: run(`n := call.Param("n"); text := call.Arg(0); return []any{n, text}, nil`), want: []string{`call.Arg(1, "n")`, `call.Arg(0, "text")`}},
		{name: "errors", source: program("", "", `if len(call.Args) == 0 { return nil, recurgent.Errorf("invalid_input", "%d", 0) }; if len(call.Args) == 1 { return nil, recurgent.NewError("not_found", "no") }; if len(call.Args) == 2 { return nil, call.Fail("late") }; return nil, recurgent.InvalidInput("bad")`),
			want: []string{`recurgent.Fail("invalid_input", fmt.Sprintf("%d", 0))`, `recurgent.Fail("not_found", "no")`, `recurgent.Fail("late", "late")`, `recurgent.Fail("invalid_input", "bad")`}},
		{name: "a message alone", source: run(`return nil, recurgent.Error("It is late")`), want: []string{`errors.New("It is late")`}},
		{name: "success", source: bare(`return recurgent.Success(1)`), want: []string{"return 1, nil"}},
		{name: "a fetch whose error is forgotten", source: run(`r := call.Fetch("https://x"); return r.Body, nil`), want: []string{`r, err := call.Fetch("https://x")`, "if err != nil {\n\t\treturn nil, err\n\t}"}},

		// Run.
		{name: "no package clause", source: strings.TrimPrefix(run("return 1, nil"), "package tool\n"), want: []string{"package tool\n"}},
		{name: "several files", source: "package main\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) { return up(\"a\"), nil }\n\n// file: up.go\npackage main\n\nimport (\n\t\"strings\"\n)\n\nfunc up(s string) string { return strings.ToUpper(s) }\n", want: []string{"package tool\n\nimport (\n\t\"recurgent\"\n\t\"strings\"\n)", "\n\nfunc up(s string)"}},
		{name: "the call by value", source: strings.Replace(run("return 1, nil"), "*recurgent.Call", "recurgent.Call", 1), want: []string{"func Run(call *recurgent.Call) (any, error) {"}},
		{name: "a value alone", source: head + "func Run(call *recurgent.Call) int { return 1 }\n", want: []string{"func run(call *recurgent.Call) int", "return run(call), nil"}},
		{name: "another result", source: head + "func Run(call *recurgent.Call) ([]string, error) { return nil, nil }\n", want: []string{"return run(call)"}},
		{name: "no call", source: head + "func Run() (any, error) { return call.Args, nil }\n", want: []string{"func Run(call *recurgent.Call) (any, error) {"}},
		{name: "one function among others", source: "package tool\nfunc Sum(l []float64) (float64, error) { return add(l), nil }\nfunc add(l []float64) float64 { return l[0] }\n", want: []string{`return Sum(recurgent.Must(call.Arg(0, "l"), []float64{}).([]float64))`}},
		{name: "one function", source: "package tool\nfunc Sum(l []float64) (float64, error) { return l[0], nil }\n", want: []string{`return Sum(recurgent.Must(call.Arg(0, "l"), []float64{}).([]float64))`}},
		{name: "Run with its argument", source: "package tool\nfunc Run(a string) string { return a }\n", want: []string{"func run(a string) string", `return run(recurgent.Must(call.Arg(0, "a"), "").(string)), nil`}},
		{name: "declared arguments", terms: declared, source: "package tool\nfunc Top(n int, text string) string { return text[:n] }\n", want: []string{`Top(recurgent.Must(call.Arg(1, "n"), int(0)).(int), recurgent.Must(call.Arg(0, "text"), "").(string)), nil`}},
		{name: "a context too", source: "package tool\nimport (\n\t\"context\"\n\t\"recurgent\"\n)\nfunc Run(ctx context.Context, call *recurgent.Call) (any, error) { return 1, nil }\n", want: []string{"func run(call *recurgent.Call) (any, error)", "return run(call)"}},
		{name: "another name", source: head + "func Execute(call *recurgent.Call) (any, error) { return 1, nil }\n", want: []string{"return Execute(call)"}},

		// Structs, and JSON that is decoded already.
		{name: "a list of structs", source: head + "type film struct {\n\tTitle string `json:\"title\"`\n\tYear  int\n}\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tl, ok := call.Arg(0, \"l\").([]film)\n\tif !ok {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"l\")\n\t}\n\treturn l[0].Title, nil\n}\n", want: []string{`l, ok := fromJSON[[]film](call.Arg(0, "l"))`, "func fromJSON[T any](v any) (T, bool) {", `"encoding/json"`}},
		{name: "a struct, asserted alone", source: program("", "type film struct{ Title string }", `f := call.Arg(0, "f").(film); return f.Title, nil`), want: []string{`f, fits := fromJSON[film](call.Arg(0, "f"))`, "if !fits {\n\t\treturn nil, recurgent.Fail(\"invalid_input\""}},
		{name: "structs of the memory", source: program("", "type film struct{ Title string }", `l, ok := call.Context["l"].([]*film); if !ok { l = []*film{} }; l = append(l, &film{"a"}); call.Context["l"] = l; return l, nil`), want: []string{"if call.Context[\"l\"] != nil {\n\t\theld, ok := fromJSON[[]*film](call.Context[\"l\"])", `return nil, errors.New("the memory holds another form")`}},
		{name: "an argument as JSON", source: program("encoding/json", "", `var l []int; err := json.Unmarshal(call.Arg(0, "l"), &l); return l, err`), want: []string{`json.Unmarshal(textOfJSON(call.Arg(0, "l")), &l)`}},
		{name: "an argument as bytes", source: program("encoding/json", "", `var m map[string]int; if err := json.Unmarshal([]byte(call.Args[0]), &m); err != nil { return nil, err }; return len(m), nil`), want: []string{`json.Unmarshal(textOfJSON(call.Args[0]), &m)`}},
		{name: "a list that is bound", source: run(`var l []float64; if err := call.Bind(&l); err != nil { return nil, err }; return len(l), nil`), want: []string{`json.Unmarshal(textOfJSON(call.Arg(0, "l")), &l)`}},
		{name: "bytes of an argument", source: program("crypto/sha256 fmt", "", `t := call.Arg(0, "t"); return fmt.Sprintf("%x", sha256.Sum256([]byte(t))), nil`), want: []string{`[]byte(recurgent.Must(t, "").(string))`}},
		{name: "a memory without a beginning", source: run(`l := call.Context["l"].([]any); m := call.Context["m"].(map[string]any); l = append(l, 1.0); m["a"] = l; call.Context["l"] = l; call.Context["m"] = m; return m, nil`), want: []string{`l, _ := call.Context["l"].([]any)`, `m, _ := call.Context["m"].(map[string]any)`, "m = map[string]any{}"}},
		{name: "methods of a value", source: run(`n, err := call.Arg(0, "n").Float64(); if err != nil { return nil, recurgent.Fail("invalid_input", "n") }; return n + float64(len(call.Arg(1, "s").String())), nil`), want: []string{`recurgent.Must(call.Arg(0, "n"), 0.0).(float64), error(nil)`, `len(recurgent.Must(call.Arg(1, "s"), "").(string))`}},

		{name: "one tag for two", source: program("", "type place struct { X, Y float64 `json:\"x,y\"` }", `var p place; if err := call.Bind(&p); err != nil { return nil, err }; return p.X + p.Y, nil`), want: []string{"X float64 `json:\"x\"`\n\tY float64 `json:\"y\"`"}},
		{name: "required names", terms: report.Terms{Returns: "object", Required: []string{"r", "unit_price"}}, source: program("", "type item struct { R, N int; UnitPrice float64 }", `return &item{1, 2, 3}, nil`), want: []string{"`json:\"r\"`", "`json:\"unit_price\"`"}},

		// Goroutines and the process.
		{name: "a lock", source: program("sync", "var mu sync.Mutex", `mu.Lock(); defer mu.Unlock(); return 1, nil`), want: []string{"error) {\n\treturn 1, nil"}},
		{name: "goroutines", source: program("sync", "", "l := make([]int, 2)\nvar wg sync.WaitGroup\nfor i := range l {\nwg.Add(1)\ngo func(i int) {\ndefer wg.Done()\nl[i] = i\n}(i)\n}\nwg.Wait()\nreturn l, nil"), want: []string{"\t\tfunc(i int) {\n\t\t\tl[i] = i\n\t\t}(i)"}},
		{name: "outputs", source: program("fmt os", "", `if len(call.Args) == 0 { fmt.Fprintln(os.Stderr, "none"); os.Exit(1) }; fmt.Fprintf(os.Stdout, "%d", 1); return 1, nil`), want: []string{`fmt.Println("none")`, `panic("the program ended itself")`, `fmt.Printf("%d", 1)`}},

		// Habits of other languages.
		{name: "while and its kin", source: run("let n = 3\nvar m := 1\nwhile n > 0 {\nn--\n}\nfor (i := 0; i < 2; i++) {\nm += i\n}\nfor i in range(m) {\nn += i\n}\nreturn n, nil"), want: []string{"n := 3", "\tm := 1", "for n > 0 {", "for i := 0; i < 2; i++ {", "for i := range m {"}},
		{name: "a ? b : c", source: run("n := len(call.Args)\nx := n > 1 ? len(call.Args) : 0\nreturn n > 2 ? \"many: more\" : x, nil"), want: []string{"x := 0\n\tif n > 1 {\n\t\tx = len(call.Args)\n\t}", "return x, nil"}},
		{name: "methods of texts", source: run(`s := "a,b"; l := s.split(","); if s.startsWith("a") { return l.join("-").toUpperCase(), nil }`), want: []string{`strings.Split(s, ",")`, `strings.HasPrefix(s, "a")`, `strings.ToUpper(strings.Join(l, "-"))`}},
		{name: "pop", source: run("l := []int{1, 2, 3}\nx := l.pop()\nl.Pop()\nreturn []int{x, len(l)}, nil"), want: []string{"x := l[len(l)-1]\n\tl = l[:len(l)-1]\n\tl = l[:len(l)-1]"}},
		{name: "for x in list", source: program("strings", "", `n, sum := 0, 0.0; for word := range strings.Fields("a b") { n += len(word) }; for x := range []float64{1} { sum += x }; return float64(n) + sum, nil`), want: []string{"for _, word := range", "for _, x := range"}},
		{name: "a line", source: program("", "", `n := len(call.Args); return "-" * n + "=" * 40, nil`), want: []string{`strings.Repeat("-", max(n, 0)) + strings.Repeat("=", 40)`}},
		{name: "an error in the place of ok", source: run(`s, err := call.Arg(0, "s").(string); if err != nil { return nil, recurgent.Fail("invalid_input", "s") }; return s, nil`), want: []string{"if !err {"}},
		{name: "a part of 100.0", source: run(`p := call.Arg(0, "p").(int); price := 80.0; return price * (1 - p/100.0), nil`), want: []string{"float64(p)/100.0"}},
		{name: "names in the plural", source: program("time", "", `return (2 * time.Minutes).String(), nil`), want: []string{"time.Minute)"}},
		{name: "a seed", source: program("math/rand time", "", `rand.Seed(time.Now().UnixNano()); return rand.Intn(3), nil`), want: []string{"error) {\n\treturn rand.Intn(3), nil"}},
		{name: "a month by its number", source: program("time", "", `m := call.Arg(0, "m").(float64); return time.Date(2024, m+1, 0, 0, 0, 0, 0, time.UTC).Day(), nil`), want: []string{`time.Month(recurgent.As(m+1, 0).(int))`}},
		{name: "what is written to", source: program("strings", "", `var b strings.Builder; b.WriteString("a"); return b, nil`), want: []string{"return b.String(), nil"}},
		{name: "a character in a text", source: program("strings", "func vowel(c byte, r rune) bool { return strings.Contains(\"aeiou\", c) || strings.Contains(\"aeiou\", r) }", `return vowel("a"[0], 'b'), nil`), want: []string{"string(rune(c))", "string(r))"}},
		{name: "a type parameter", source: program("cmp", "func clamp[T cmp.Ordered](v, low, high T) T { return max(low, min(v, high)) }", `low := 1.0; for _, n := range call.Arg(0, "l").([]any) { return clamp(n, low, 2), nil }`), want: []string{`clamp(recurgent.Must(n, 0.0).(float64), low, 2)`}},
		{name: "a new variable for the old", source: run(`l := []float64{1, 2}; m := l[0]; if len(l) == 2 { m := (l[0] + l[1]) / 2 }; return m, nil`), want: []string{"m = (l[0] + l[1]) / 2"}},
		{name: "an error beside what is set", source: program("strconv", "", `n := 0; if len(call.Args) > 0 { n = strconv.Atoi("1") }; return n, nil`), want: []string{"value, err := strconv.Atoi(\"1\")\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tn = value"}},
		{name: "a distance of bytes", source: run(`key, out := "LEMON", ""; for i, c := range "ATTACK" { shift := key[i%5] - 'A'; out += string((c-'A'+shift)%26 + 'A') }; return out, nil`), want: []string{"c-'A'+rune(shift)"}},
		{name: "an argument, sorted", source: program("sort", "", `l := call.Arg(0, "l").([]any); s := sort.Slice(l, func(i, j int) bool { return i > j }); return s, nil`), want: []string{"s := l"}},
		{name: "a list of a helper", terms: declared, source: program("", "func odd[T any](l []T) []T { var out []T; for i, x := range l { if i%2 == 1 { out = append(out, x) } }; return out }", `return odd(call.Args), nil`), want: []string{"out := []T{}"}},
		{name: "nil beside values", source: head + "func Run(call *recurgent.Call) (any, error) {\n\tif len(call.Args) > 0 {\n\t\treturn 1\n\t}\n\treturn nil\n}\n", want: []string{"return 1, nil", "return nil, nil"}},
		{name: "the least common multiple", source: program("", "func gcd(a, b int) int { for b != 0 { a, b = b, a%b }; return a }", `a, b := call.Arg(0, "a").(int), call.Arg(1, "b").(int); return a * b / gcd(a, b), nil`), want: []string{"a * b / gcd(a, b)"}},

		// Types and statements.
		{name: "int and float64", source: run(`l := []float64{1, 2}; sum := 0.0; for i, x := range l { sum += x * i }; return sum / len(l), nil`), want: []string{"x * float64(i)", "sum / float64(len(l))"}},
		{name: "a length", source: run(`n, _ := call.Arg(0, "n").(float64); l := make([]int, n); return l[:n], nil`), want: []string{`n, _ := call.Arg(0, "n").(float64)`, "make([]int, recurgent.Must(n, 0).(int))", "l[:recurgent.Must(n, 0).(int)]"}},
		{name: "constants", source: run(`n := len(call.Args); return n * 0.5, nil`), want: []string{"float64(n) * 0.5"}},
		{name: "Max of ints", source: program("math", "", `a := []int{1}; a[0] = math.Max(a[0], math.Min(a[0], 2)); return a, nil`), want: []string{"a[0] = recurgent.As(math.Max(float64(a[0]), math.Min(float64(a[0]), 2)), 0).(int)"}},
		{name: "a float64 where an int has to stand", source: program("math strconv", "", `x := 2.0; l := make([]int, math.Ceil(x/2)); l[x-2] = math.Round(x); return strconv.Itoa(x), nil`),
			want: []string{"recurgent.As(math.Ceil(x/2), 0).(int)", "l[recurgent.As(x-2, 0).(int)] = recurgent.As(math.Round(x), 0).(int)", "strconv.Itoa(recurgent.As(x, 0).(int))"}},
		{name: "a sum of whole numbers", source: run(`sum := 0; for _, v := range call.Arg(0, "l").([]any) { f := v.(float64); sum += f }; return sum, nil`), want: []string{"sum = recurgent.Must(float64(sum)+(f), 0).(int)"}},
		{name: "the remainder of float64", source: run(`n := call.Arg(0, "n").(float64); for _, c := range []float64{25, 10} { n = n % c }; return n, nil`), want: []string{"n = float64(recurgent.As(n, 0).(int) % recurgent.As(c, 0).(int))"}},
		{name: "hours", source: program("time", "", `n := call.Arg(0, "n").(float64); h := 2; d := h * 24 * time.Hour; d += time.Minute * n; return d.String(), nil`), want: []string{"time.Duration(h*24) * time.Hour", "time.Minute * time.Duration(recurgent.Must(n, 0).(int))"}},
		{name: "%d of a float64", source: program("fmt", "", `n := call.Arg(0, "n").(float64); return fmt.Sprintf("%d of %.1f %s", n, len(call.Args), "a"), nil`), want: []string{"recurgent.Must(n, 0).(int), float64(len(call.Args))"}},
		{name: "a condition", source: run(`m := call.Arg(0, "m").(map[string]any); if !m["a"] { return 1, nil }; if m["b"] { return 2, nil }`), want: []string{`!recurgent.Must(m["a"], false).(bool)`, `if recurgent.Must(m["b"], false).(bool) {`}},
		{name: "append", source: run("l := []string{}\nl.append(\"b\")\nappend(l, \"a\")\nreturn sort.Strings(l), nil"), want: []string{`l = append(l, "b")`, `l = append(l, "a")`, "sort.Strings(l)\n\treturn l, nil"}},
		{name: "a method that is not called", source: program("strings", "", `var b strings.Builder; b.WriteString("a"); return b.String, nil`), want: []string{"return b.String(), nil"}},
		{name: "a first character", source: program("unicode/utf8", "", `r := utf8.DecodeRuneInString("é"); return string(r), nil`), want: []string{"r, _ := utf8"}},
		{name: "an argument and whether it is there", source: run(`n, ok := call.Arg(0, "n"); return []any{n, ok}, nil`), want: []string{`n, ok := call.Arg(0, "n"), call.Arg(0, "n") != nil`}},
		{name: "an argument or else", source: run(`s, n := call.Arg(0, "s", ",").(string), call.Arg(1, "n", 2).(float64); return []any{s, n}, nil`), want: []string{`recurgent.Or(call.Arg(0, "s"), ",").(string)`, `recurgent.Or(call.Arg(1, "n"), float64(2)).(float64)`}},
		{name: "imports on one line", source: "package tool\nimport (\"fmt\"; \"recurgent\")\nfunc Run(call *recurgent.Call) (any, error) {\n\tfmt.Println(len(call.Args))\n}\n", want: []string{"return len(call.Args), nil"}},
		{name: "a log", source: program("log", "", `log.Printf("%d", 1); if len(call.Args) == 0 { log.Fatalf("no %d", 1) }; return 1, nil`), want: []string{`fmt.Printf("%d", 1)`, `panic(fmt.Sprintf("no %d", 1))`}},
		{name: "a main beside Run", source: "package main\n\nimport (\n\t\"os\"\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return 1, nil }\n\nfunc main() {\n\tRun(nil)\n\tos.Exit(0)\n}\n", want: []string{"package tool\n\nimport (\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return 1, nil }\n"}},
		{name: "the method by its name", terms: report.Terms{Method: "page_count"}, source: "package tool\nfunc CalculatePageCount(total, size int) int { if total%size > 0 { return total/size + 1 }; return total / size }\n", want: []string{`CalculatePageCount(recurgent.Must(call.Arg(0, "total"), int(0)).(int), recurgent.Must(call.Arg(1, "size"), int(0)).(int)), nil`}},
		{name: "parameters beside the call", source: head + "func Run(call *recurgent.Call, a float64, b string) ([]any, error) { return []any{a, b}, nil }\n", want: []string{`return run(call, recurgent.Must(call.Arg(0, "a"), 0.0).(float64), recurgent.Must(call.Arg(1, "b"), "").(string))`}},
		{name: "an error forgotten", source: program("strconv", "", `n := strconv.Atoi("1"); return n, nil`), want: []string{`n, err := strconv.Atoi("1")`, "return nil, err"}},
		{name: "an error alone", source: bare(`if len(call.Args) == 0 { return recurgent.Fail("a", "b") }; return 1`), want: []string{`return nil, recurgent.Fail("a", "b")`, "return 1, nil"}},
		{name: "a text as an error", source: run(`return nil, "it is late"`), want: []string{`errors.New("it is late")`}},
		{name: "nil for a value", source: program("", "func f() (string, error) { return nil, recurgent.Fail(\"a\", \"b\") }", `return f()`), want: []string{`return "", recurgent.Fail`}},
		{name: "whole numbers", source: bare("n, ok := call.Arg(0, \"n\").(float64)\nif !ok || n < 1 { return nil, recurgent.Fail(\"a\", \"b\") }\nif n%2 == 0 { return make([]int, n), nil }\nreturn n * 2, nil"), want: []string{"recurgent.Must(n, 0).(int)%2 == 0", "return n * 2, nil"}},
		{name: "characters and texts", source: run(`out := ""; for _, c := range "abc" { if c == "a" { out += c } }; switch out { case 'a': return 1, nil }`), want: []string{`string(c) == "a"`, "out += string(c)", `case "a":`}},
		{name: "near names", source: program("sort strings", "", `l := []float64{1}; sort.Floats(l); return strings.toUpper("a"), nil`), want: []string{"sort.Float64s(l)", `strings.ToUpper("a")`}},
		{name: "other languages", source: run(`l := []int{}; if l.length > 0 && True { return null, nil }; var f float = 1; return f, None`), want: []string{"len(l) > 0 && true", "return nil, nil", "var f float64"}},
		{name: "scanned", source: program("fmt", "", `var a int; _, err := fmt.Sscanf("1", "%d", a); return a, err`), want: []string{`fmt.Sscanf("1", "%d", &a)`}},
		{name: "declared twice", source: run(`a := 1; a := 2; return a, nil`), want: []string{"a = 2"}},
		{name: "a nil list", terms: declared, source: bare("var l []string\nfor range call.Args { l = append(l, \"a\") }\nreturn l, nil"), want: []string{"l := []string{}"}},
		{name: "a nil list of a program that is corrected", source: bare("var l []string\nfor range call.Args[0].(int) { l = append(l, \"a\") }\nreturn l, nil"), want: []string{"l := []string{}"}},
		{name: "a list that is found", terms: declared, source: program("regexp maps slices strings", "", `l := regexp.MustCompile("a").FindAllString("b", -1); if len(l) > 0 { return l, nil }; return slices.Sorted(maps.Keys(map[string]int{})), nil`), want: []string{`l := append([]string{}, regexp.MustCompile("a").FindAllString("b", -1)...)`, "return append([]string{}, slices.Sorted(maps.Keys(map[string]int{}))...), nil"}},
		{name: "a list that is found in an object", terms: report.Terms{Returns: "object"}, source: program("regexp", "", `return map[string]any{"l": regexp.MustCompile("a").FindAllString("b", -1)}, nil`), want: []string{`append([]string{}, regexp`}},
		{name: "a struct that is bound", source: run("var in struct{ N int }\nif err := call.Bind(in); err != nil { return nil, err }\nreturn in.N, nil"), want: []string{"call.Bind(&in)"}},

		{name: "printed at the end", source: "package tool\n\nimport (\n\t\"fmt\"\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) {\n\tn := len(call.Args)\n\tfmt.Println(n)\n}\n", want: []string{"return n, nil"}},

		{name: "hidden results", source: head + "func two() (int, error) { return 2, nil }\n\nfunc Run(call *recurgent.Call) (value any, err error) {\n\tif n, err := two(); err != nil {\n\t\treturn\n\t} else {\n\t\tvalue = n\n\t}\n\treturn\n}\n", want: []string{"\t\treturn value, err\n"}},
		{name: "what logs", source: run(`call.Println("a", 1); recurgent.Logf("%d", 2); return 1, nil`), want: []string{`fmt.Println("a", 1)`, `fmt.Printf("%d", 2)`, `"fmt"`}},
		{name: "a struct in a map", source: program("", "type stat struct{ n, sum int }", `m := map[string]stat{}; for i, w := range []string{"a"} { m[w].n++; m[w].sum += i }; return len(m), nil`), want: []string{"entry := m[w]", "entry.n++", "m[w] = entry"}},
		{name: "a nil map", source: program("", "var seen map[string]bool\nfunc see(s string) { seen[s] = true }", `var n map[string]int; n["a"]++; see("b"); return []any{len(n), len(seen)}, nil`), want: []string{"var seen map[string]bool = map[string]bool{}", "var n map[string]int = map[string]int{}"}},
		{name: "a list of the memory by another name", source: run(`l := []string{}; if kept, found := call.Context["l"]; found { l = kept.([]string) }; l = append(l, "a"); call.Context["l"] = l; return l, nil`), want: []string{`call.Context["l"] = recurgent.Held(call.Context["l"], []string{})`}},

		{name: "returned by the call", source: head + "func Run(call *recurgent.Call) {\n\tif len(call.Args) == 0 {\n\t\tcall.Return(nil, recurgent.Fail(\"invalid_input\", \"none\"))\n\t\treturn\n\t}\n\tcall.Return(1)\n}\n", want: []string{"return nil, recurgent.Fail(\"invalid_input\", \"none\")\n\t}", "return 1, nil\n}"}},
		{name: "a shifted character", source: run(`out := ""; for _, c := range "abc" { out += 'a' + (c-'a'+3)%26 }; return out, nil`), want: []string{"out += string('a' + (c-'a'+3)%26)"}},

		{name: "JSON as a text", terms: declared, source: program("encoding/json", "", `l := []int{1}; b, err := json.Marshal(l); if err != nil { return nil, err }; return string(b), nil`), want: []string{"return l, nil"}},
		{name: "members that count", source: run(`m, _ := call.Arg(0, "m").(map[string]any); x, s := 2.5, "x"; m["a"] -= x + 1; m["s"] += s; return m, nil`), want: []string{`m["a"] = recurgent.Or(m["a"], 0.0).(float64) - (x + 1)`, `m["s"] = recurgent.Or(m["s"], "").(string) + (s)`}},
		{name: "a text that is read", source: program("bufio", "", `text := "a b"; s := bufio.NewScanner(text); n := 0; for s.Scan() { n++ }; return n, nil`), want: []string{`bufio.NewScanner(strings.NewReader(text))`}},
		{name: "ordered JSON", source: program("sort", "", `l := call.Arg(0, "l").([]any); sort.Slice(l, func(i, j int) bool { a, b := l[i].(map[string]any), l[j].(map[string]any); if a["n"] != b["n"] { return a["n"] > b["n"] }; return a["s"] <= b["s"] }); return l, nil`), want: []string{`lessOfJSON(b["n"], a["n"])`, `!lessOfJSON(b["s"], a["s"])`}},
		{name: "a value and its error", source: program("strconv", "", `n := 0; for _, s := range []string{"1"} { n += int(strconv.Atoi(s)) }; return n, nil`), want: []string{"value, err := strconv.Atoi(s)", "n += int(value)"}},
		{name: "fields of JSON", source: program("", "type who struct { Name string; Age int }", `l := []who{}; for _, o := range call.Arg(0, "l").([]any) { m := o.(map[string]any); l = append(l, who{Name: m["name"], Age: m["age"]}) }; return l, nil`), want: []string{`Name: recurgent.Must(m["name"], "").(string)`, `Age: recurgent.Must(m["age"], 0).(int)`}},
		{name: "the name of a package", source: program("strings encoding/csv", "", `csv := call.Arg(0, "csv").(string); rows, err := csv.NewReader(strings.NewReader(csv)).ReadAll(); return rows, err`), want: []string{"csvValue := call.Arg", "csv.NewReader(strings.NewReader(csvValue))"}},
		{name: "pages", source: program("net/http encoding/json io/ioutil", "", `resp, err := http.Get("https://x"); if err != nil { return nil, err }; defer resp.Body.Close(); if resp.StatusCode != http.StatusOK { return nil, nil }; b, err := ioutil.ReadAll(resp.Body); if err != nil { return nil, err }; var v any; err = json.Unmarshal(b, &v); return v, err`),
			want: []string{`call.Fetch("https://x")`, "resp.Status != 200", "io.ReadAll(strings.NewReader(resp.Body))"}},
		{name: "pages by other names", source: run(`a, err := recurgent.HTTPGet("https://x"); if err != nil { return nil, err }; b, err := recurgent.HTTP.Get("https://y"); if err != nil { return nil, err }; c, err := call.FetchURL("https://z"); return []any{a.Body, b.Body, string(c)}, err`),
			want: []string{`call.Fetch("https://x")`, `call.Fetch("https://y")`, `call.Fetch("https://z")`, "string(c.Body)"}},
		{name: "files by other names", source: program("io", "", `f, err := call.Download("https://x/a.zip"); if err != nil { return nil, err }; in, err := call.Open(f); if err != nil { return nil, err }; b, err := io.ReadAll(in); if err != nil { return nil, err }; g, err := recurgent.DownloadFile("https://y"); return []any{len(b), map[string]any{"f": g}}, err`),
			want: []string{`call.FetchFile("https://x/a.zip")`, `call.FetchFile("https://y")`}},
		{name: "a map that is returned", terms: report.Terms{Returns: "object"}, source: bare("var m map[string]int\nfor i := range 3 { m[\"a\"] += i }\nreturn m, nil"), want: []string{"var m map[string]int = map[string]int{}"}},
		{name: "a test beside it", source: "package tool\n\nimport (\n\t\"recurgent\"\n\t\"testing\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return 1, nil }\n\nfunc TestRun(t *testing.T) { t.Log(1) }\n", want: []string{"return 1, nil }\n"}},
		{name: "a default of the context", source: run(`m := call.Context.Get("m", map[string]any{}); m["a"] = 1; call.Context["m"] = m; return len(m), nil`), want: []string{`recurgent.Or(call.Context["m"], map[string]any{}).(map[string]any)`}},
		{name: "days of the week", source: program("time", "", `d := time.Now(); n := (7 - d.Weekday()) % 7; return d.AddDate(0, 0, n).Format("2006"), nil`), want: []string{"d.AddDate(0, 0, int(n))"}},
		{name: "parts of an hour", source: run(`n := call.Arg(0, "n").(int); return []int{n / 3600, n % 3600 / 60, n % 60}, nil`), want: []string{`recurgent.Must(call.Arg(0, "n"), 0).(int)`}},

		{name: "counters in the memory", source: run(`m, ok := call.Context["m"].(map[string]any); if !ok { m = map[string]any{} }; n, _ := m["a"].(int); m["a"] = n + 1; call.Context["m"] = m; return n, nil`), want: []string{`recurgent.Held(m["a"], 0).(int)`}},

		{name: "wrong arguments", source: program("errors fmt", "", `s, ok := call.Arg(0, "s").(string); if !ok { return nil, errors.New("no text") }; n, ok := call.Arg(1, "n").(float64); if !ok || n < 1 { return nil, fmt.Errorf("bad %v", call.Arg(1, "n")) }; return []any{s, n}, nil`),
			want: []string{`recurgent.Fail("invalid_input", "no text")`, `recurgent.Fail("invalid_input", fmt.Sprintf("bad %v", call.Arg(1, "n")))`}},

		{name: "types in messages", source: program("errors", "", `return nil, errors.New("not_found: no such day")`), want: []string{`recurgent.Fail("not_found", "no such day")`}},
		{name: "the memory by another name", source: run(`n, _ := call.State["n"].(float64); call.State["n"] = n + 1; return n, nil`), want: []string{`call.Context["n"] = n + 1`}},
		{name: "a method", source: head + "type Tool struct{}\n\nfunc (t *Tool) Run(call *recurgent.Call) (any, error) { return 1, nil }\n", want: []string{"return new(Tool).Run(call)"}},
		{name: "all arguments", terms: declared, source: "package tool\n\nfunc run(args map[string]any) (any, error) { return []any{args[\"text\"], args[\"n\"]}, nil }\n", want: []string{`args["text"] = v`, `v := call.Arg(1, "n"); v != nil`}},
		{name: "parts", source: program("strings", "", `for _, l := range []string{"a=1"} { k, v := strings.SplitN(l, "=", 2); return []string{k, v}, nil }`), want: []string{"if len(parts) != 2 {", "k, v := parts[0], parts[1]"}},
		{name: "a step before", source: run("n := 0\n++n\nfor i := 0; i < 3; ++i {\nn += i\n}\nreturn n, nil"), want: []string{"\tn++\n", "i++ {"}},
		{name: "time as a variable", source: program("time", "", `time, err := time.Parse("2006-01-02", "2024-01-02"); if err != nil { return nil, err }; return time.Add(time.Duration(2) * 24 * time.Hour).Hour(), nil`), want: []string{"timeValue.Add(time.Duration(2) * 24 * time.Hour).Hour()"}},
		{name: "the rest of a quotient", source: run(`n, ok := call.Arg(0, "n").(float64); if !ok { return nil, recurgent.Fail("a", "b") }; return []int{int(n / 3600), int(n%3600) / 60, int(n % 60)}, nil`), want: []string{"int(recurgent.Must(n, 0).(int)%3600) / 60"}},

		{name: "characters in a format", source: program("fmt", "", `l := []rune("ab"); return fmt.Sprintf("%s-%s", l[:1], l), nil`), want: []string{`fmt.Sprintf("%s-%s", string(l[:1]), string(l))`}},
		{name: "nil lists in an object", terms: report.Terms{Returns: "object"}, source: run(`var added, gone []string; for range call.Args { added = append(added, "a") }; return map[string]any{"added": added, "gone": gone}, nil`), want: []string{"added, gone := []string{}, []string{}"}},
		{name: "values at places", source: program("", "type pair struct { k string; v float64 }", `l := []pair{}; for k, v := range call.Context { l = append(l, pair{k, v}) }; return len(l), nil`), want: []string{`pair{k, v.(float64)}`}},
		{name: "an error as a message", source: program("strconv", "", `n, err := strconv.Atoi("1"); if err != nil { return nil, recurgent.Fail("invalid_input", err) }; return n, nil`), want: []string{`recurgent.Fail("invalid_input", err.Error())`}},
		{name: "the host package, forgotten", source: "package tool\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tif len(call.Args) > 3 {\n\t\treturn nil, recurgent.NewError(\"invalid_input\", \"no\")\n\t}\n\treturn 1, nil\n}\n", want: []string{`"recurgent"`, `recurgent.Fail("invalid_input", "no")`}},
		{name: "a saved context", source: run("call.Context[\"n\"] = 1\ncall.SaveContext()\nreturn 1, nil"), want: []string{"call.Context[\"n\"] = 1\n\treturn 1, nil"}},
		{name: "bits of numbers", source: program("strconv", "", `n, err := strconv.ParseInt("101", 2); if err != nil { return nil, err }; f, err := strconv.ParseFloat("1"); return []any{n, f}, err`), want: []string{`strconv.ParseInt("101", 2, 64)`, `strconv.ParseFloat("1", 64)`}},
		{name: "reversed within", source: program("slices strings", "", `l := strings.Fields("a b"); return strings.Join(slices.Reverse(l), " "), nil`), want: []string{"slices.Reverse(l)\n", `strings.Join(l, " ")`}},
		{name: "sorted, by another name", source: program("sort", "", `l := []string{"b", "a"}; o := sort.Strings(l); return o, nil`), want: []string{"sort.Strings(l)\n\to := l\n"}},
		{name: "a class of characters", source: program("regexp", "", "return regexp.MustCompile(\"\\D+\").ReplaceAllString(\"a1\", \"\"), nil"), want: []string{`"\\D+"`}},
		{name: "a word of a regular expression", source: program("regexp", "", "return regexp.MustCompile(\"\\b\\w+\\\\.\\x41\\b\").FindString(\"a.A\"), nil"), want: []string{`"\\b\\w+\\.\x41\\b"`}},
		{name: "a step of the memory", source: run(`m, _ := call.Context["m"].(map[string]any); m["a"]++; return m, nil`), want: []string{`m["a"] = recurgent.Or(m["a"], 0.0).(float64) + 1`}},

		// Layouts.
		{name: "layouts", source: program("time fmt", "const day = \"%d.%m.%Y\"", `t, err := time.Parse("YYYY-MM-DD HH:MM", "2024-01-02 10:00"); if err != nil { return nil, err }; u, _ := time.Parse("yyyy-mm-dd", "2024-01-02"); return fmt.Sprint(t.Format(day), u), nil`), want: []string{`"2006-01-02 15:04"`, `"2006-01-02"`, `"02.01.2006"`}},

		// Syntax.
		{name: "the last brace", source: head + "func Run(call *recurgent.Call) (any, error) {\n\treturn 1, nil\n", want: []string{"return 1, nil\n}\n"}},
		{name: "a function within one", source: run("func up(s string) string {\n\treturn s + \"!\"\n}\nreturn up(\"a\"), nil"), want: []string{"up := func(s string) string {"}},
		{name: "two places", source: program("math", "", `return 1 + math.Round(2.675, 2), nil`), want: []string{"1 + (math.Round((2.675)*100) / 100)"}},
		{name: "a truth of JavaScript", source: run(`n := len(call.Args); s := call.Method; if n { return 1, nil }; if s { return 2, nil }`), want: []string{"if n != 0 {", `if s != "" {`}},
		{name: "and and or", source: run(`n := len(call.Args); if n > 1 and n < 5 or n == 9 { return 1, nil }`), want: []string{"if n > 1 && n < 5 || n == 9 {"}},
		{name: "an object without its type", source: bare(`return {"n": 1}, nil`), want: []string{`return map[string]any{"n": 1}, nil`}},
		{name: "single quotes", source: program("strings", "", `return strings.Join([]string{'ab', 'cd'}, ', '), nil`), want: []string{`"ab", "cd"}, ", ")`}},
		{name: "fewer arguments", source: program("strings", "", `s := strings.Trim(" a "); return append(strings.SplitN(s, ","), strings.Split(s)...), nil`), want: []string{"strings.TrimSpace(", `strings.Split(s, ",")`, "strings.Fields(s)"}},
		{name: "names of strings", source: program("strings", "", `if strings.StartsWith("ab", "a") { return strings.Upper("b"), nil }; return strings.IndexOf("a", "b"), nil`), want: []string{"strings.HasPrefix(", "strings.ToUpper(", "strings.Index("}},
		{name: "sorted as itself", source: program("sort", "", `l := []float64{2, 1}; sort.Sort(l); return l, nil`), want: []string{"sort.Float64s(l)"}},
		{name: "an order without its result", source: program("sort", "", `l := []int{2, 1}; sort.Slice(l, func(i, j int) { return l[i] < l[j] }); return l, nil`), want: []string{"func(i, j int) bool {"}},
		{name: "lengths", source: run(`a := [2]int{}; m := map[string]int{}; l := []int{1}; return a.length + m.size() + l.length(), nil`), want: []string{"len(a) + len(m) + len(l)"}},
		{name: "methods of a builder", source: program("strings", "", `var b strings.Builder; b.writeString("a"); return b.ToString(), nil`), want: []string{`b.WriteString("a")`, "b.String()"}},
		{name: "times compared", source: program("time", "", `a, b := time.Unix(1, 0), time.Unix(2, 0); if a <= b { return (b - a).String(), nil }`), want: []string{"if !a.After(b) {", "(b.Sub(a)).String()"}},
		{name: "an array of a variable length", source: run(`n := 3; l := [n]any{}; var k [n]int; k[0] = 1; l[0] = k; return l, nil`), want: []string{"l := make([]any, n)", "var k = make([]int, n)"}},
		{name: "a number in a message", source: run(`n := 3; return nil, recurgent.Fail("not_found", "there is no " + n)`), want: []string{`"there is no "+fmt.Sprint(n)`}},
		{name: "no error to check", source: program("", "func two() int { return 2 }", `n, err := two(); if err != nil { return nil, err }; return n, nil`), want: []string{"n, err := two(), error(nil)"}},
		{name: "fields in small letters", terms: report.Terms{Required: []string{"mean_value"}}, source: program("", "type result struct { n int; meanValue float64 }", `r := result{n: 1}; r.meanValue = 2; return r, nil`),
			want: []string{"N         int", "`json:\"n\"`", "`json:\"mean_value\"`", "result{N: 1}", "r.MeanValue = 2"}},
		{name: "a name for an object", source: program("", "type object map[string]any", `o, ok := call.Arg(0, "o").(object); return []any{o["a"], ok}, nil`), want: []string{"type object = map[string]any"}},
		{name: "a type parameter elsewhere", source: program("", "func first[T any](l []T) T { return l[0] }", `return first(call.Arg(0, "l").([]T)), nil`), want: []string{`.([]any)`}},
		{name: "whole minutes", source: program("fmt time", "", `d := time.Duration(90) * time.Second; return fmt.Sprintf("%d:%02d", d.Minutes(), d.Seconds()%60), nil`), want: []string{"int(d.Minutes()), int(d.Seconds())%60"}},
		{name: "a type as the message", source: program("errors fmt", "", `if len(call.Args) == 0 { return nil, errors.New("not_found") }; return nil, fmt.Errorf("invalid_input: %v is odd", call.Args[0])`), want: []string{`recurgent.Fail("not_found", "not found")`, `recurgent.Fail("invalid_input", fmt.Sprintf("%v is odd", call.Args[0]))`}},
		{name: "a failure as a text", source: run(`if len(call.Args) == 0 { return "invalid_input: a name is needed", nil }`), want: []string{`return nil, recurgent.Fail("invalid_input", "a name is needed")`}},
		{name: "a value printed before null", source: program("fmt", "", `n := len(call.Args); fmt.Printf("%d\n", n)`), want: []string{"return n, nil"}},
		{name: "an argument that is no number", source: program("strconv", "", `n := strconv.Atoi(call.Arg(0, "n").(string)); return n, nil`), want: []string{`recurgent.Fail("invalid_input", err.Error())`}},
		{name: "a pattern in a variable", source: program("regexp", "", "p := \"^\\d+$\"\nreturn regexp.MustCompile(p).MatchString(\"1\"), nil"), want: []string{`p := "^\\d+$"`}},
		{name: "a struct of the arguments", source: head + "type Input struct {\n\tName string\n\tYears int `json:\"years\"`\n}\n\nfunc Run(call *recurgent.Call, in Input) (any, error) { return in.Name, nil }\n", want: []string{"var in Input\n\tif err := call.Bind(&in); err != nil {", "return run(call, in)"}},
		{name: "a function that main shows", source: "package main\n\nimport \"fmt\"\n\nfunc double(n int) int { return 2 * n }\n\nfunc main() { fmt.Println(double(3)) }\n", want: []string{`double(recurgent.Must(call.Arg(0, "n"), int(0)).(int)), nil`}},
		{name: "a value made a number", source: run(`n, err := recurgent.ToInt(call.Arg(0, "n")); if err != nil { return nil, err }; return n, nil`), want: []string{`recurgent.Must(call.Arg(0, "n"), 0).(int)`}},
		{name: "a body read in each round", source: program("encoding/json", "", `out := []any{}; for _, u := range []string{"https://a.example"} { page, err := call.Fetch(u); if err != nil { return nil, err }; var v any; if err := json.NewDecoder(page.Body).Decode(&v); err != nil { return nil, err }; out = append(out, v) }; return out, nil`), want: []string{"json.NewDecoder(strings.NewReader(page.Body))"}},
		{name: "a list in a map", source: run(`m := map[string][]int{}; for _, k := range []string{"a"} { m[k].append(1) }; return m, nil`), want: []string{`m[k] = append(m[k], 1)`}},
		{name: "an average", source: run(`l := []float64{1, 2}; sum := 0; for _, f := range l { sum += f }; return sum / len(l), nil`), want: []string{"sum := 0.0", "sum / float64(len(l))"}},
		{name: "all matches", source: program("regexp", "", `return len(regexp.MustCompile("a").FindAllString("aa")), nil`), want: []string{`FindAllString("aa", -1)`}},
		{name: "a builder that appends", source: program("strings", "", `var b strings.Builder; b.append("a"); return b.String(), nil`), want: []string{`b.WriteString("a")`}},
		{name: "characters to a text", source: run(`r := []rune(call.Method); return r.toString(), nil`), want: []string{"return string(r), nil"}},
		{name: "parameters without types", source: program("sort", "", `l := []int{2, 1}; sort.Slice(l, func(i, j) bool { return l[i] < l[j] }); return l, nil`), want: []string{"func(i int, j int) bool {"}},
		{name: "a member by its name", source: run(`n := call.Context.n; call.Context.n = 1; return n, nil`), want: []string{`n := call.Context["n"]`, `call.Context["n"] = 1`}},
		{name: "keys that are sorted", source: program("sort", "", `m := map[string]bool{"a": true}; k := m.keys(); sort.Strings(k); return k, nil`), want: []string{"slices.Sorted(maps.Keys(m))"}},
		{name: "the boundary of a word", source: program("regexp", "", `p := "\bb\\.c\b"; return []any{regexp.MustCompile("(?i)\ba\b").MatchString("a"), regexp.MustCompile(p).MatchString("b.c")}, nil`), want: []string{`"(?i)\\ba\\b"`, `p := "\\bb\\.c\\b"`}},
		{name: "not", source: run(`m := map[string]bool{}; if not m["a"] and not m["b"] { return 1, nil }`), want: []string{`if !m["a"] && !m["b"] {`}},
		{name: "added by a condition", source: bare("s := call.Method\nfor i := range s {\ns += s[i] == s[0] ? \"g\" : \"-\"\n}\nreturn s, nil"), want: []string{"if s[i] == s[0] {", `s += "-"`}},
		{name: "the first character", source: program("strings", "", `return strings.ToUpper(call.Method[0]) + ".", nil`), want: []string{"strings.ToUpper(string([]rune(call.Method)[:1]))"}},
		{name: "declarations first", source: "type in struct{ N int }\n\npackage tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) { return in{1}, nil }\n", want: []string{"package tool\n\nimport", "type in struct{ N int }"}},
		{name: "commas", source: run("return map[string]any{\n\"a\": 1,\n\"b\": 2\n}, nil"), want: []string{"\"b\": 2,\n"}},
		{name: "braces", source: head + "func Run(call *recurgent.Call) (any, error)\n{\n\tif len(call.Args) == 0\n\t{\n\t\treturn 0, nil\n\t}\n\telse if len(call.Args) == 1 {\n\t\treturn 1, nil\n\t}\n\treturn 2, nil\n}\n", want: []string{"(any, error) {", "== 0 {", "} else if"}},
	} {
		g := newGate(t)
		fixed := g.Fix(c.source, c.terms)
		text, notes := fixed.Text, fixed.Fixes
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", c.name, w, text)
			}
		}
		if _, r := g.Check(text); r != nil {
			t.Errorf("%s: refused: %s\n%s", c.name, strings.Join(r.Errors, "\n"), text)
		}
		if len(notes) == 0 || len(fixed.Faults) > 0 {
			t.Errorf("%s: noted: %v, refused: %v", c.name, notes, fixed.Faults)
		}
		if more := g.Fix(text, c.terms); more.Text != text || more.Fixes != nil {
			t.Errorf("%s: fixed again: %v", c.name, more.Fixes)
		}
	}
}

// What a correction could turn into another value is refused: by the compiler or, where it compiles, by name.
func TestFixRefuses(t *testing.T) {
	t.Parallel()
	const head = "package tool\n\nimport \"recurgent\"\n\n"
	for name, c := range map[string]struct{ source, says string }{
		"a step of an own map":        {program("", "", `m := map[string]any{"n": 1}; m["n"]++; n, _ := m["n"].(int); return n, nil`), "non-numeric"},
		"a sum of runes":              {program("", "", `m := map[string]any{}; for _, c := range "ab" { m["s"] += c }; return m, nil`), "mismatched types"},
		"a character and a sign":      {program("", "", `out := ""; for _, c := range "ab" { out += c + ',' }; return out, nil`), "mismatched types"},
		"output, then an error":       {program("strconv", "", `if _, err := strconv.Atoi("x"); err != nil { call.Output("no number"); return nil, err }; return 1, nil`), "call.Output undefined"},
		"two calls in order":          {program("strconv", "var n = []string{\"8\", \"5\"}\nfunc next() string { s := n[0]; n = n[1:]; return s }\nfunc first() int { return len(next()) }", `x := first() - int(strconv.Atoi(next())); return x, nil`), "multiple-value"},
		"pops compared":               {program("", "var s = []any{7.0, 9.0}\nfunc pop() any { v := s[0]; s = s[1:]; return v }", `return pop() <= pop(), nil`), "not defined on"},
		"a text read in turns":        {program("fmt", "", `s, n, sum := "3 4", 0, 0; for range 2 { fmt.Fscan(s, &n); sum += n }; return sum, nil`), "cannot use"},
		"a file's name":               {program("encoding/csv", "", `path := call.Arg(0, "path").(string); rows, err := csv.NewReader(path).ReadAll(); return rows, err`), "cannot use"},
		"the best so far":             {head + "func find() (best int) { for i := range 3 { best := i; if best > 1 { return } }; return }\nfunc Run(call *recurgent.Call) (any, error) { return find(), nil }\n", "not in scope"},
		"a text cut off":              {head + "var names = map[string]string{\n\t\"it\": \"Italy\",\n", "expected"},
		"a file as a value":           {program("", "", `b, err := call.Download("https://x"); return b, err`), "call.Download undefined"},
		"a page as a value":           {program("", "", `body, err := recurgent.FetchURL("https://x"); return body, err`), "undefined: recurgent.FetchURL"},
		"a default and whether":       {program("", "", `n, found := call.Context.Get("n", 0.0); return []any{n, found}, nil`), "Get undefined"},
		"two memories":                {program("", "", `call.State["n"] = 1; call.Session["n"] = 2; return call.State["n"], nil`), "undefined"},
		"a write by a callback":       {program("slices", "type s struct{ n, m int }", `x := map[string]s{}; x["a"].n = slices.IndexFunc([]int{1}, func(int) bool { v := x["a"]; v.m = 1; x["a"] = v; return true }); return x["a"].m, nil`), "cannot assign"},
		"a field in small letters":    {program("encoding/json", "type page struct{ status string }", `var p page; if err := json.Unmarshal([]byte("{}"), &p); err != nil { return nil, err }; return p.status, nil`), "never filled"},
		"a table cut short":           {program("", "var romans = []string{\n\t\"M\",\n\t// ... the others in the same way\n\t\"I\",\n}", `return romans, nil`), "left out"},
		"a part to be written":        {program("", "func parse(s string) int {\n\t// TODO: implement\n\treturn len(s)\n}", `return parse("a"), nil`), "left out"},
		"a number of the memory":      {program("", "", `m, ok := call.Context["m"].(map[string]any); if !ok { m = map[string]any{} }; n, _ := m["a"].(float32); m["a"] = float64(n) + 1; call.Context["m"] = m; return n, nil`), "never holds"},
		"digits alone":                {program("encoding/json", "", `return call.Arg(0, "n").(json.Number).String(), nil`), "beyond 2^53"},
		"digits, or a failure":        {program("encoding/json", "", `n, ok := call.Arg(0, "n").(json.Number); if !ok { return nil, recurgent.Fail("invalid_input", "no number") }; return n.String(), nil`), "beyond 2^53"},
		"digits, or none":             {program("encoding/json", "", `n, _ := call.Arg(0, "n").(json.Number); return n.String(), nil`), "beyond 2^53"},
		"a decrease seen later":       {program("", "func take(v any) int { m := v.(map[string]int); m[\"a\"]--; return m[\"a\"] }", `stock, n := call.Arg(0, "m"), 0; for range 3 { n += take(stock) }; return n, nil`), "never holds"},
		"changed in a loop":           {program("", "", `n := 0; for range 2 { m := call.Arg(0, "m").(map[string]int); m["a"]--; n += m["a"] }; return n, nil`), "never holds"},
		"a memory handed out":         {program("", "func m(c *recurgent.Call) map[string]int { return c.Context[\"m\"].(map[string]int) }", `m(call)["n"]++; return 1, nil`), "never holds"},
		"a memory in a switch":        {program("", "", `switch m := call.Context["m"].(type) { case map[string]int: m["n"]++ }`), "never holds"},
		"several lists":               {program("", "", `switch call.Arg(0, "l").(type) { case []int: return 1, nil; case []string: return 2, nil }`), "never holds"},
		"the remainder by others":     {program("", "", `k, sum := call.Arg(0, "k").(int), 0; for i := range 9 { if i%k == 0 { sum += i } }; return sum / k, nil`), "drops the fraction"},
		"sorted, or a copy":           {program("sort", "", `l := []string{"b"}; o := l; l = sort.Strings(l); return o, nil`), "used as value"},
		"printed JSON":                {head + "import (\"encoding/json\"; \"fmt\")\nfunc Run(call *recurgent.Call) (any, error) {\n\tb, _ := json.Marshal(call.Args)\n\tfmt.Printf(\"%d\", b)\n}\n", "missing return"},
		"a number in a text":          {program("", "", `n := 98; return "a" + n, nil`), "mismatched types"},
		"what main makes of it":       {"package main\nfunc double(n int) int { return n * 2 }\nfunc main() { println(double(3) + 1) }\n", "no function Run"},
		"two that may begin":          {"package tool\nfunc Shout(s string) string { return s }\nfunc answer(s string) string { return s }\n", "no function Run"},
		"an error of its own":         {program("", "type bad struct{ M string }\nfunc (b *bad) Error() string { return b.M }", `if len(call.Args) == 0 { return &bad{"x"} }`), "not enough return values"},
		"a file, no argument":         {program("", "", `return call.ReadText("sales.csv"), nil`), "call.ReadText undefined"},
		"memory, or which":            {program("", "", `return call.Get("total"), nil`), "call.Get undefined"},
		"the host's name":             {"package tool\nimport rg \"recurgent\"\nfunc Run(call *rg.Call) (any, error) { return call.GetString(\"s\", \"recurgent.org\"), nil }\n", "call.GetString undefined"},
		"a share and the rest":        {program("", "", `n, c := call.Arg(0, "n").(float64), len(call.Args); s := c / n; return []any{s, c % n}, nil`), "mismatched types"},
		"the first and one more":      {program("", "", `a := call.Args[0]; b := call.GetInt("b"); return []any{a, b}, nil`), "call.GetInt undefined"},
		"bytes of JSON":               {program("encoding/json", "", `var v string; err := json.Unmarshal(call.Arg(0, "l"), &v); return v, err`), "cannot use"},
		"two names in one word":       {program("", "type item struct{ UnitPrice float64 }", `i := call.Arg(0, "i").(item); return i.UnitPrice, nil`), "never holds"},
		"a choice that may fail":      {program("", "", "l := []int{}\nx := len(l) > 0 ? l[0] : l[1]\nreturn x, nil"), "Go has no a ? b : c"},
		"places of a list":            {program("", "", `s := ""; for i := range []string{"a"} { s += i }; return s, nil`), "mismatched types"},
		"places by another name":      {program("", "", `l, n := []float64{1}, 0.0; for at := range l { n += l[at] * "x" * at }; return n, nil`), "mismatched types"},
		"a memory that is read":       {program("", "", `m := call.Context["m"].(map[string]struct{ a int }); return len(m), nil`), "never holds"},
		"a channel":                   {program("sync", "", `var wg sync.WaitGroup; c := make(chan int); go func() { c <- 1 }(); wg.Wait(); return <-c, nil`), "not available"},
		"fields of one tag":           {program("", "type place struct { X, Y float64 `json:\"x\"` }", `var p place; err := call.Bind(&p); return p.X + p.Y, err`), "none is filled"},
		"another new variable":        {program("", "", `n := 1; if len(call.Args) > 0 { n := "2" }; return n, nil`), "new variable"},
		"half of an int":              {program("", "", `n, ok := call.Arg(0, "n").(int); if !ok { return nil, recurgent.Fail("a", "b") }; return n / 2, nil`), "drops the fraction"},
		"a mean of ints":              {program("", "", `sum, l := 0, call.Arg(0, "l").([]int); for _, v := range l { sum += v }; return float64(sum / len(l)), nil`), "drops the fraction"},
		"the remainder of others":     {program("", "", `l := call.Arg(0, "l").([]int); sum := 0; for i := range l { sum += l[(i+1)%len(l)] }; return sum / 2, nil`), "drops the fraction"},
		"any divided":                 {program("", "", `n := call.Arg(0, "n"); return n / 2, nil`), "mismatched types any"},
		"places by order":             {program("", "", `e := call.Int("exponent"); b := call.Int("base"); return b - e, nil`), "call.Int undefined"},
		"a place or a default":        {program("", "", `return call.Arg("limit", 10), nil`), "cannot use \"limit\""},
		"memory or an argument":       {program("", "", `call.Context["n"] = 1; return call.Int("n"), nil`), "call.Int undefined"},
		"a list changed in place":     {program("sort", "", `sort.Ints(call.Arg(0, "l").([]int)); return call.Arg(0, "l"), nil`), "never holds"},
		"structs":                     {program("", "type film struct{ Title string }", `f, ok := call.Arg(0, "f").(film); return []any{f.Title, ok}, nil`), "call.Bind"},
		"characters":                  {program("", "", `r, ok := call.Arg(0, "r").(rune); return []any{r, ok}, nil`), "never holds"},
		"a character's digit":         {program("", "", `n := call.Arg(0, "n").(int); d := n%2 + '0'; return d + "", nil`), "mismatched types"},
		"the sum of characters":       {program("", "", `s := 0; for _, c := range "12" { s += c }; return s, nil`), "mismatched types"},
		"a quotient as a float64":     {program("math", "", `a, b := 5, 2; return math.Floor(a / b), nil`), "cannot use a / b"},
		"a weekday":                   {program("time", "", `return "on " + time.Monday, nil`), "mismatched types"},
		"appended to nothing":         {program("", "func add(out []int, v int) { append(out, v) }", `l := []int{}; add(l, 1); return l, nil`), "is not used"},
		"an error that nothing reads": {program("strconv", "", `n, err := strconv.Atoi(call.Method); return n, nil`), "is not looked at"},
		"a character as a value":      {program("", "", `b := []byte(call.Method); return b[0], nil`), "is a character, which JSON has as a number"},
		"JavaScript's replace":        {program("strings", "", `return strings.Replace("aa", "a", "b"), nil`), "strings.ReplaceAll"},
		"keys or items":               {program("", "", `for k := range call.Arg(0, "m") { return k, nil }`), "cannot range over"},
		"a hidden variable":           {program("strconv", "", `n := 1; if len(call.Args) > 0 { n, err := strconv.Atoi("2"); if err != nil { return nil, err } }; return n, nil`), "new variable"},
		"a text of a number":          {program("", "", `n := 65; return string(n), nil`), "strconv.Itoa"},
		"printed twice":               {head + "func Run(call *recurgent.Call) (any, error) {\n\tprintln(1)\n\tprintln(len(call.Args))\n}\n", "missing return"},
		"a memory in two types":       {program("", "", `l := call.Context["l"].([]int); m, ok := call.Context["l"].([]string); return []any{l, m, ok}, nil`), "never holds"},
		"a memory by two names":       {program("", "", `c := call.Context; m := c["m"].(map[string]int); m["n"]++; return c["m"], nil`), "never holds"},
		"a float64, then divided":     {program("", "", `sum := 0; for _, f := range []float64{1.5} { sum += f }; return sum / 2, nil`), "mismatched types"},
		"a quotient in a format":      {program("fmt", "", `n := call.Arg(0, "n").(int); return fmt.Sprintf("%.1f", n/2), nil`), "does not fit"},
		"a list seen elsewhere":       {program("", "", `l := []int{}; m := map[string][]int{"l": l}; l.append(1); return m, nil`), "no field or method append"},
		"parameters of a helper":      {"package tool\nfunc minus(b, a int) int { return a - b }\n", "no function Run"},
		"main makes it":               {"package main\nimport \"recurgent\"\nimport \"os\"\nfunc Run(call *recurgent.Call) (any, error) { return 1.25, nil }\nfunc main() { v, _ := Run(nil); os.Stdout.WriteString(v.(string)) }\n", "not available"},
		"a power of ints":             {program("", "", `n := 2; return n ** 3, nil`), "math.Pow"},
		"a power of a power":          {program("", "", `x := 2.0; return x ** 3.0 ** 2.0, nil`), "math.Pow"},
		"steps and an int":            {program("", "", `m, n := map[string]any{}, 0; for range 2 { m["a"]++; if m["a"] == 2 { n++ } }; return n, nil`), "non-numeric"},
		"a sum in a switch":           {program("", "", `m, f := map[string]any{}, 3.0; m["s"] += f; switch m["s"] { case 3: return 1, nil }`), "mismatched types"},
		"sums that have to equal":     {program("reflect", "", `m, f := map[string]any{}, 3.0; m["s"] += f; return reflect.DeepEqual(m, map[string]any{"s": 3}), nil`), "mismatched types"},
		"reversed, and as it was":     {program("slices strings", "", `l := strings.Fields("a b"); s := strings.Join(slices.Reverse(l), " "); return s == strings.Join(l, " "), nil`), "used as value"},
		"reversed in a loop":          {program("slices strings", "", `l, out := []string{"a", "b"}, ""; for range 2 { out += strings.Join(slices.Reverse(l), "") }; return out, nil`), "used as value"},
		"sorted, and looked at":       {program("sort", "", `l := []string{"b", "a"}; first := func() string { return l[0] }; o := sort.Strings(l); return []any{o, first()}, nil`), "used as value"},
		"a text for an error":         {program("errors", "const none = \"none\"\nfunc find() error { return none }", `if errors.Is(find(), none) { return "none", nil }; return "some", nil`), "cannot use none"},
		"an error not asked for":      {program("bufio strings", "", `s := bufio.NewScanner(strings.NewReader("a")); if err := s.Err; err != nil { return nil, err }; return s.Scan(), nil`), "cannot use err"},
		"sorted by a function":        {program("slices", "", `l := []int{2, 1}; f := func() []int { return slices.Reverse(l) }; return []any{f(), f()}, nil`), "used as value"},
		"a base, or bits":             {program("strconv", "", `n, err := strconv.ParseInt("10", 32); return n, err`), "not enough arguments"},
		"a backslash in a text":       {program("regexp", "", `return regexp.MustCompile("a").ReplaceAllString("a", "\-"), nil`), "unknown escape"},
		"numbers as characters":       {program("", "", `s := ""; for _, n := range []int32{65} { s += n }; return s, nil`), "mismatched types"},
		"two hidden results":          {head + "func two() (int, error) { return 2, recurgent.Fail(\"a\", \"b\") }\nfunc Run(call *recurgent.Call) (value any, err error) { if value, err := two(); err != nil { _ = value; return }; return }\n", "not in scope"},
		"twice the number":            {program("", "", `return double(21), nil`), "undefined: double"},
		"all arguments, or one":       {"package tool\nfunc Run(args []any) (any, error) { return args[0], nil }\n", "func Run(call *recurgent.Call)"},
		"a nil list": {program("", "", `n := call.Arg(0, "n").(int); var l []int // null where there is none
for i := range n { l = append(l, i) }; if n > 2 { return l, nil }`), "which is null"},
	} {
		g := newGate(t)
		fixed := g.Fix(c.source, report.Terms{})
		said := fmt.Sprint(fixed.Faults)
		if _, r := g.Check(fixed.Text); r != nil {
			said += strings.Join(r.Errors, "\n") + r.Hint
		} else if len(fixed.Faults) == 0 {
			t.Errorf("%s: runs:\n%s", name, fixed.Text)
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: %q is not said, but %s", name, c.says, said)
		}
	}
}
