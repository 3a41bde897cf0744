package gate

import (
	"strings"
	"testing"
)

// A refusal of a common mistake of models names the correction.
func TestHints(t *testing.T) {
	t.Parallel()
	const head = "package tool\n\nimport \"recurgent\"\n\n"
	const run = "func Run(call *recurgent.Call) (any, error) {\n\treturn 1, nil\n}\n"
	tests := []struct{ name, source, kind, hint string }{
		{"fence", "```go\n" + head + run + "```\n", invalidCode, "without Markdown fences"},
		{"text and fence", "Here it is:\n\n```go\n" + head + run + "```\nIt returns 1.", invalidCode,
			"without Markdown fences"},
		{"text after", head + run + "\nThis returns 1.", invalidCode, "one complete Go file"},
		{"two files", head + run + "\npackage tool\n\nvar x = 1\n", invalidCode, "Submit one file"},
		{"no package clause", "import \"recurgent\"\n\n" + run, invalidCode, "Begin the file with: package tool"},
		{"escaped line breaks", strings.ReplaceAll(head+run, "\n", `\n`), invalidCode, "line breaks"},
		{"HTML entities", program("", "", "if 1 &lt; len(call.Args) {}"), invalidCode, "HTML entities"},
		{"package main without Run", "package main\n\nfunc main() {}\n", invalidCode, "Declare func Run"},
		{"Run of another name", strings.Replace(head+run, "Run", "Execute", 1), invalidCode, "Declare func Run"},
		{"a function variable", head + "var Run = func(call *recurgent.Call) (any, error) { return 1, nil }\n",
			invalidCode, "Declare func Run"},
		{"a name that is not available", program("context", "", "context.AfterFunc(nil, nil)"), dependencyPolicy,
			"There are no timers"},
		{"a method that is not available", program("text/template", "", "template.New(\"\").ParseFiles(\"a\")"),
			dependencyPolicy, "template.New(name).Parse(text)"},
		{"a type that is not available", program("time", "var t *time.Timer", ""), dependencyPolicy,
			"There are no timers"},
		{"a package that is not available", program("net/smtp", "", "smtp.SendMail(\"\", nil, \"\", nil, nil)"),
			dependencyPolicy, "Mail is sent through the interface of a service"},
		{"a function of another name", program("archive/zip bytes", "", "_, err := zip.NewZipReader(bytes.NewReader(nil), 0); _ = err"),
			invalidCode, "Package zip has NewReader(r io.ReaderAt, size int64) (*zip.Reader, error)"},
		{"a method of another name", program("text/template strings", "",
			"var b strings.Builder; template.New(``).Exec(&b, nil)"), invalidCode,
			"A template.Template has Execute(wr io.Writer, data any) error"},
		{"a field of another name", program("archive/zip", "", "var f zip.File; _ = f.Size"), invalidCode,
			"UncompressedSize64"},
		{"an argument that does not fit", program("archive/zip strings", "",
			"_, err := zip.NewReader(strings.NewReader(``), ``); _ = err"), invalidCode,
			"zip.NewReader(r io.ReaderAt, size int64) (*zip.Reader, error) is its signature"},
		{"a file to parse", program("go/parser go/token", "", "parser.ParseFile(token.NewFileSet(), \"a.go\", nil, 0)"),
			dependencyPolicy, "pass the text as the source"},
		{"a forgotten import that is not allowed", program("", "", "return os.Getenv(\"x\"), nil"), dependencyPolicy,
			"no environment"},
		{"a forgotten import of a path", program("", "", "return http.Get(\"x\")"), dependencyPolicy, "call.Fetch"},
		{"a forgotten import of several", program("", "", "return rand.Float64(), nil"), invalidCode,
			`"math/rand", "math/rand/v2"`},
		{"the host package's own path", "package tool\nimport \"example.com/x/recurgent\"\n" + run, dependencyPolicy,
			`Import "recurgent"`},
		{"goquery", program("github.com/PuerkitoBio/goquery", "", ""), dependencyPolicy, `Import "recurgent/html"`},
		{"the parser of x/net", program("golang.org/x/net/html", "", ""), dependencyPolicy, `Import "recurgent/html"`},
		{"a method of goquery that is missing", program("recurgent/html", "",
			"doc, _ := html.Parse(\"\"); doc.AddSelection(doc)"), invalidCode,
			"A Selection has All, Attr, AttrOr, Children"},
		{"a function of goquery that is missing", program("recurgent/html", "",
			"doc, _ := html.Parse(\"\"); _ = html.NodeName(doc)"), invalidCode,
			"The package has CheckSelector, Document, EscapeString"},
		{"a selector that is none", program("recurgent/html", "",
			"doc, _ := html.Parse(\"\"); const s = \"td:\"; doc.Find(s + \"first\")"), invalidCode,
			"Write a CSS selector"},
		{"arithmetic on any", program("", "", "return call.Args[0] + 1, nil"), invalidCode, "assert them first"},
		{"any as a string", program("strings", "", "return strings.ToUpper(call.Args[0]), nil"), invalidCode,
			"assert them first"},
	}
	g := newGate(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, r := g.Check(test.source)
			if r == nil {
				t.Fatal("accepted")
			}
			// The hint of a single fault is separate.
			if r.Type != test.kind || !strings.Contains(r.Hint+strings.Join(r.Errors, "\n"), test.hint) {
				t.Errorf("got %s %q, hint %q; want %s, hint %q", r.Type, r.Message, r.Hint, test.kind, test.hint)
			}
		})
	}
}

// Messages name the host package as programs do.
func TestHostTypesInMessages(t *testing.T) {
	t.Parallel()
	_, r := newGate(t).Check(program("", "", "return call.GetArg(0), nil"))
	if r == nil || !strings.Contains(r.Message, "type *recurgent.Call has no field or method GetArg") {
		t.Errorf("got %+v", r)
	}
}

// A byte order mark, CRLF and package main are accepted and do not move lines.
func TestForeignForms(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	good := "package main\n\nimport \"fmt\"\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\treturn fmt.Sprint(1), nil\n}\n\nfunc main() {}\n"
	for name, source := range map[string]string{"as it is": good, "CRLF": strings.ReplaceAll(good, "\n", "\r\n"),
		"byte order mark": "\ufeff" + good} {
		if _, r := g.Check(source); r != nil {
			t.Errorf("%s: %s", name, r.Message)
		}
		if _, r := g.Check(strings.Replace(source, "Sprint(1)", "Sprint(x)",
			1)); r == nil || r.Line != 7 || r.Column != 20 {
			t.Errorf("%s: got %+v, want undefined: x at 7:20", name, r)
		}
	}
}

// All faults of a program are reported together, each once, with its line and what to write instead.
func TestAllFaults(t *testing.T) {
	t.Parallel()
	_, r := newGate(t).Check(program("os io/ioutil net/http strings", "func init() {}", `
f, err := ioutil.ReadAll(nil)
n := call.Arg(0, "n") + 1
x := missing
y := missing
resp, err := http.Get("x")
s := strings.Reverse("a")
call.Printer("x")
_ = os.Args
return 1, 2, nil`))
	if r == nil {
		t.Fatal("accepted")
	}
	want := []string{
		`program.go:4:8: package "io/ioutil" is not available to programs. io.ReadAll and io.Discard are in io.`,
		"program.go:7:1: init functions are not allowed. Initialise package variables where they are declared, or in Run.",
		`mismatched types any and untyped int). Values of arguments, of the context and of decoded JSON are any; assert them first. JSON numbers are float64: f, ok := call.Arg(1, "n").(float64), then int(f). Lists are []any, objects map[string]any.`,
		"program.go:12:6: undefined: missing (also in line 13)",
		`undefined: http.Get. http.Get is not available to programs. Use call.Fetch(url) or call.FetchWith(recurgent.Request{...}): the daemon performs the request.`,
		"undefined: strings.Reverse. Package strings has Reader, Repeat(s string, count int) string, Replace",
		"call.Printer undefined (type *recurgent.Call has no field or method Printer). A Call has Role, Method,",
		"undefined: os.Args. os.Args is not available to programs. Programs have no files and no environment.",
		"too many return values",
	}
	for i, w := range want {
		if i >= len(r.Errors) || !strings.Contains(r.Errors[i], w) {
			t.Errorf("fault %d: got %q, want %q", i, r.Errors[min(i, len(r.Errors)-1)], w)
		}
	}
	if len(r.Errors) != len(want) || r.Type != dependencyPolicy || r.Hint != "" || r.Message != r.Errors[0] {
		t.Errorf("got %d faults, %s, %q", len(r.Errors), r.Type, r.Message)
	}
	many := ""
	for i := range 200 {
		many += "_ = missing" + strings.Repeat("x", i) + "\n"
	}
	if _, r = newGate(t).Check(program("", "", many)); len(r.Errors) != maxErrors ||
		len(strings.Join(r.Errors, "")) > maxFaultBytes {
		t.Errorf("%d faults, %d bytes", len(r.Errors), len(strings.Join(r.Errors, "")))
	}
}
