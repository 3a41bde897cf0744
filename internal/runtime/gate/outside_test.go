package gate

import (
	"slices"
	"strings"
	"testing"
)

// The names in a program's text are found however they are put together, as long as they are certain. Anything else is
// computed.
func TestNamedOutside(t *testing.T) {
	t.Parallel()
	const get = "func get(call *recurgent.Call, u string) string {\n\tr, err := call.Fetch(u)\n\tif err != nil {\n\t\treturn \"\"\n\t}\n\treturn r.Body\n}\n"
	tests := []struct {
		name, source         string
		hosts, writes, tools string
	}{
		{"nothing", program("", "", ""), "", "", ""},
		{"a literal", program("", "", `_, _ = call.Fetch("https://a.example/x?y")`), "https://a.example", "", ""},
		{"a port, and user information", program("", "", `_, _ = call.Fetch("http://u:p@a.example:8080")`),
			"http://a.example:8080", "", ""},
		{"another host in the user information", program("", "", `_, _ = call.Fetch("https://a.example@b.example/")`),
			"https://b.example", "", ""},
		{"constants", program("", `const base = "https://" + host; const host = "a." + "example"`,
			`_, _ = call.Fetch(base + "/x")`), "https://a.example", "", ""},
		{"an unused address", program("", "", `_ = "HTTPS://A.example/x"`), "https://A.example", "", ""},
		{"an argument behind the host", program("net/url", "",
			`q, _ := call.Arg(0, "q").(string); _, _ = call.Fetch("https://a.example/?q=" + url.QueryEscape(q))`),
			"https://a.example", "", ""},
		{"an argument at the end of the host", program("", "",
			`q, _ := call.Arg(0, "q").(string); _, _ = call.Fetch("https://a.example" + q)`), "* https://a.example", "",
			""},
		{"an argument", program("", "", `u, _ := call.Arg(0, "u").(string); _, _ = call.Fetch(u)`), "*", "", ""},
		{"a variable", program("", "",
			`u := "https://a.example/x"; u += "?a=1"; if len(call.Args) > 0 { u = "https://b.example/" }; _, _ = call.Fetch(u)`), "https://a.example https://b.example", "", ""},
		{"a variable that grows by itself", program("", "",
			`u := "https://a.example/x"; for range 3 { u = u + "/" + "y" }; _, _ = call.Fetch(u)`), "https://a.example",
			"", ""},
		{"a variable whose address is taken", program("encoding/json", "",
			`u := "https://a.example/x"; _ = json.Unmarshal(nil, &u); _, _ = call.Fetch(u)`), "* https://a.example", "",
			""},
		{"Sprintf", program("fmt", "",
			`_, _ = call.Fetch(fmt.Sprintf("https://a.example/%v?%d", call.Arg(0, "x"), 1))`), "https://a.example", "",
			""},
		{"Sprintf of a base", program("fmt", `var base = "https://a.example"`,
			`_, _ = call.Fetch(fmt.Sprintf("%s/x/%v", base, call.Arg(0, "x")))`), "https://a.example", "", ""},
		{"Sprintf of the host", program("fmt", "",
			`_, _ = call.Fetch(fmt.Sprintf("https://%v.example/", call.Arg(0, "x")))`), "*", "", ""},
		{"a helper", program("", get, `get(call, "https://a.example/"); get(call, "https://b.example/")`),
			"https://a.example https://b.example", "", ""},
		{"a helper of an argument", program("fmt", get, `get(call, fmt.Sprint(call.Arg(0, "x")))`), "*", "", ""},
		{"a helper as a value", program("", get, `f := get; f(call, "x")`), "*", "", ""},
		{"a list", program("", "",
			`for _, u := range []string{"https://a.example/", "https://b.example/"} { _, _ = call.Fetch(u) }`),
			"https://a.example https://b.example", "", ""},
		{"a map", program("", `var urls = map[string]string{"a": "https://a.example/"}`,
			`_, _ = call.Fetch(urls["a"])`), "https://a.example", "", ""},
		{"a map that is changed", program("", `var urls = map[string]string{"a": "https://a.example/"}`,
			`urls["b"], _ = call.Arg(0, "x").(string); _, _ = call.Fetch(urls["b"])`), "* https://a.example", "", ""},
		{"fields", program("", `type source struct { name, at string }`,
			`for _, s := range []source{{"a", "https://a.example/"}, {name: "b", at: "https://b.example/"}} { _, _ = call.Fetch(s.at) }`), "https://a.example https://b.example", "", ""},
		{"fields from outside", program("encoding/json", `type source struct { At string }`,
			`s := source{"https://a.example/"}; _ = json.Unmarshal(nil, &s); _, _ = call.Fetch(s.At)`),
			"* https://a.example", "", ""},
		{"an URL", program("net/url", "",
			`u, _ := url.Parse("https://a.example/x"); u.RawQuery = "a=1"; _, _ = call.Fetch(u.String())`),
			"https://a.example", "", ""},
		{"an URL of another host", program("net/url", "",
			`u, _ := url.Parse("https://a.example/x"); u.Host, _ = call.Arg(0, "h").(string); _, _ = call.Fetch(u.String())`), "* https://a.example", "", ""},
		{"the method as a value", program("", "", `f := call.Fetch; _, _ = f("https://a.example/")`),
			"* https://a.example", "", ""},
		{"the method of the type", program("", "", `_, _ = (*recurgent.Call).Fetch(call, "https://a.example/")`),
			"* https://a.example", "", ""},
		{"the method by an interface", program("",
			"type fetcher interface { Fetch(string) (*recurgent.Response, error) }",
			`var f fetcher = call; _, _ = f.Fetch("https://a.example/")`), "* https://a.example", "*", ""},
		{"a request", program("", "",
			`_, _ = call.FetchWith(recurgent.Request{URL: "https://a.example/", Method: "post"})`), "https://a.example",
			"POST", ""},
		{"a request by position", program("", "",
			`_, _ = call.FetchWith(recurgent.Request{"https://a.example/", "GET", nil, "", 0, false, nil})`),
			"https://a.example", "", ""},
		{"a request that is set", program("", "",
			`var r recurgent.Request; r.URL = "https://a.example/"; r.Method = "PUT"; _, _ = call.FetchWith(r)`),
			"https://a.example", "PUT", ""},
		{"a request of an argument", program("", "",
			`m, _ := call.Arg(0, "m").(string); _, _ = call.FetchWith(recurgent.Request{URL: "https://a.example/", Method: m})`), "https://a.example", "*", ""},
		{"a request from outside", program("encoding/json", "",
			`var r recurgent.Request; _ = json.Unmarshal(nil, &r); _, _ = call.FetchWith(r)`), "*", "*", ""},
		{"a request made of another struct", program("",
			"type q struct { URL, Method string; Header map[string]string; Body string; Retry int; Cache bool; BodyBytes []byte }", `_, _ = call.FetchWith(recurgent.Request(q{}))`), "*", "*", ""},
		{"a new request", program("", "", `r := new(recurgent.Request); _, _ = call.FetchWith(*r)`), "*", "*", ""},
		{"a tool", program("", "", `call.Tool("tax").Call("rate", 1)`), "", "", "tax.rate"},
		{"a tool in a variable", program("", "",
			`t := call.Tool("tax"); for _, m := range []string{"rate", "net"} { t.CallWith(m, nil, nil) }`), "", "",
			"tax.net tax.rate"},
		{"a delegate", program("",
			`func builder(call *recurgent.Call) *recurgent.Tool { return call.Delegate("parser", recurgent.Contract{}) }`, `builder(call).Call("rows")`), "", "", "parser.rows"},
		{"a tool of an argument", program("", "", `r, _ := call.Arg(0, "r").(string); call.Tool(r).Call("rate")`), "",
			"", "*"},
		{"a tool's method as a value", program("", "", `f := call.Tool("tax").Call; f("rate")`), "", "", "*"},
		{"an embedded call", program("", "type mine struct { *recurgent.Call }",
			`mine{call}.Fetch("https://a.example/")`), "https://a.example", "", ""},
	}
	g := newGate(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, r := g.Check(test.source)
			if r != nil {
				t.Fatalf("refused: %+v\n%s", r, test.source)
			}
			for _, x := range []struct {
				what string
				got  []string
				want string
			}{{"hosts", p.Facts.Hosts, test.hosts}, {"writes", p.Facts.Writes, test.writes},
				{"tools", p.Facts.Tools, test.tools}} {
				if got := strings.Join(x.got, " "); got != x.want {
					t.Errorf("%s: got %q, want %q", x.what, got, x.want)
				}
			}
		})
	}
}

// A program whose strings branch without end counts as one that computes, and costs no more than others.
func TestNamedOutsideIsBounded(t *testing.T) {
	t.Parallel()
	var decls strings.Builder
	for i := range 40 {
		n, next := string(rune('a'+i/26))+string(rune('a'+i%26)), string(rune('a'+(i+1)/26))+string(rune('a'+(i+1)%26))
		decls.WriteString("func f" + n + "(c *recurgent.Call, u string) { f" + next + "(c, u+\"x\"); f" + next +
			"(c, u+u) }\n")
	}
	decls.WriteString("func fbo(c *recurgent.Call, u string) { _, _ = c.Fetch(u) }\n")
	p, r := newGate(t).Check(program("", decls.String(), `faa(call, "https://a.example/")`)) // within its deadline
	if r != nil || !slices.Contains(p.Facts.Hosts, "*") {
		t.Fatalf("got %+v, %+v", p, r)
	}
}
