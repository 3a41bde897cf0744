package tools

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Whole numbers beyond 2^53 leave a program as they came: sorted, kept in the context, passed to another tool. A
// json.RawMessage has the order of names, too. A program that would pass over one, or change it, is repaired.
func TestDigitsAreKept(t *testing.T) {
	t.Parallel()
	sorts := rig.Program("\trows, _ := call.Arg(0, \"rows\").([]any)\n\tsort.SliceStable(rows, func(i, j int) bool {\n\t\ta, _ := rows[i].(map[string]any)[\"name\"].(string)\n\t\tb, _ := rows[j].(map[string]any)[\"name\"].(string)\n\t\treturn a < b\n\t})\n\treturn rows, nil", "sort")
	keeps := rig.Program("\tlast := call.Context[\"last\"]\n\tcall.Context[\"last\"] = call.Arg(0, \"id\")\n\treturn []any{last, call.Tool(\"echo\").Call(\"same\", call.Arg(0, \"id\")).Value}, nil")
	binds := rig.Program("\tvar in struct{ ID any `json:\"id\"` }\n\tif err := call.Bind(&in); err != nil {\n\t\treturn nil, err\n\t}\n\treturn in.ID, nil")
	raw := rig.Program("\tvar in struct{ Order json.RawMessage `json:\"order\"` }\n\terr := call.Bind(&in)\n\treturn string(in.Order), err", "encoding/json")
	blind := rig.Program("\tn, _ := call.Arg(0, \"n\").(float64)\n\treturn n + 1, nil")
	exact := rig.Program("\tif n, ok := call.Arg(0, \"n\").(json.Number); ok {\n\t\ti, err := n.Int64()\n\t\treturn i + 1, err\n\t}\n\tn, ok := call.Arg(0, \"n\").(float64)\n\tif !ok {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"n must be a number\")\n\t}\n\treturn n + 1, nil", "encoding/json")
	both := rig.Program("\tif _, ok := call.Arg(0, \"n\").(float64); !ok {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"n must be a number\")\n\t}\n\tvar in struct {\n\t\tN    int64 `json:\"n\"`\n\t\tRows []any `json:\"rows\"`\n\t}\n\terr := call.Bind(&in)\n\treturn []any{in.N, in.Rows, call.Arg(1, \"rows\")}, err")
	m := rig.NewModel(t, rig.Script{"table.sort": {sorts}, "table.keep": {keeps}, "table.bind": {binds},
		"table.both": {both}, "table.raw": {raw}, "echo.same": {rig.ProgGiven}, "math.next": {blind, exact}})
	d := rig.Start(t, m)
	s := d.Session("table")
	answer := func(session, body string) string {
		t.Helper()
		r := d.Send(http.MethodPost, "/v1/sessions/"+session+"/calls", []byte(body), nil)
		var reply struct {
			Outcome struct {
				Value json.RawMessage `json:"value"`
				Error string          `json:"error_message"`
			} `json:"outcome"`
		}
		if err := json.Unmarshal(r.Body, &reply); err != nil {
			t.Fatal(err)
		}
		return string(reply.Outcome.Value) + reply.Outcome.Error
	}
	for _, c := range []struct{ body, want string }{
		{`{"method": "sort", "args": [[{"id": 7615917337495251231, "name": "b"}, {"id": 1234567890123456789, "name": "a"}]]}`, `[{"id":1234567890123456789,"name":"a"},{"id":7615917337495251231,"name":"b"}]`},
		{`{"method": "keep", "args": [7615917337495251231]}`, `[null,7615917337495251231]`},
		{`{"method": "keep", "kwargs": {"id": 9007199254740993}}`, `[7615917337495251231,9007199254740993]`},
		{`{"method": "both", "args": [7615917337495251231, [9007199254740993]]}`,
			`[7615917337495251231,[9007199254740993],[9007199254740993]]`},
		{`{"method": "raw", "args": [{"z": 9007199254740993, "a": 1.10}]}`, `"{\"z\":9007199254740993,\"a\":1.10}"`},
		{`{"method": "raw", "kwargs": {"order": {"z": 9007199254740993, "a": 1.10}}}`,
			`"{\"z\":9007199254740993,\"a\":1.10}"`},
		{`{"method": "bind", "args": [12345678901234567890123]}`, `12345678901234567890123`},
	} {
		if got := answer(s, c.body); got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	n := d.Session("math")
	if got := answer(n, `{"method": "next", "args": [41]}`); got != "42" {
		t.Errorf("a small number: %s", got)
	}
	if got := answer(n, `{"method": "next", "args": [7615917337495251231]}`); got != "7615917337495251232" || !strings.Contains(m.LastQuestion().User, "json.Number") {
		t.Errorf("a large one: %s; the model was asked with:\n%s", got, m.LastQuestion().User)
	}
}

// A program that takes float64 only, and gets a whole number beyond 2^53, is repaired: it neither passes over the number
// nor changes it, whichever way it looks for float64. What does not concern such a number is as before.
func TestDigitsAreNotPassedOver(t *testing.T) {
	t.Parallel()
	const list, rows = "\trows, _ := call.Arg(0, \"rows\").([]any)\n", "[7615917337495251231, 1]"
	const bound = "\tn, ok := call.Arg(0, \"n\").(float64)\n\tif !ok || n < 0 {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"n\")\n\t}\n" +
		"\tvar in struct{ N int64 `json:\"n\"` }\n\tif err := call.Bind(&in); err != nil {\n\t\treturn nil, err\n\t}\n"
	programs := map[string]struct{ program, args, want string }{
		"asserts":  {list + "\tsum := 0.0\n\tfor _, r := range rows {\n\t\tif n, ok := r.(float64); ok {\n\t\t\tsum += n\n\t\t}\n\t}\n\treturn sum, nil", rows, "repaired"},
		"declares": {list + "\tvar n, ok = rows[0].(float64)\n\treturn []any{n, ok}, nil", rows, "repaired"},
		"switches": {list + "\tswitch n := rows[0].(type) {\n\tcase float64:\n\t\treturn n, nil\n\t}\n\treturn 0, nil", rows, "repaired"},
		"generic":  {list + "\tn, _ := to[float64](rows[0])\n\treturn n, nil\n}\n\nfunc to[T any](v any) (T, bool) {\n\tx, ok := v.(T)\n\treturn x, ok", rows, "repaired"},
		"formats":  {list + "\treturn fmt.Sprintf(\"%.0f\", rows[0]), nil", rows, "repaired"},
		"defaults": {list + "\treturn recurgent.Or(rows[0], 1.0), nil", rows, "repaired"},
		"binds":    {"\tvar in struct{ Rows []float64 `json:\"rows\"` }\n\tif err := call.Bind(&in); err != nil {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", err.Error())\n\t}\n\treturn in.Rows, nil", rows, "repaired"},
		"checked":  {bound + "\treturn n, nil", "7615917337495251231", "repaired"},
		"panics":   {list + "\treturn rows[0].(float64), nil", rows, "repaired"},

		"checks":   {bound + "\treturn in.N, nil", "7615917337495251231", "7615917337495251231"},
		"kinds":    {list + "\tswitch rows[0].(type) {\n\tcase float64:\n\t\t_, ok := rows[0].(float64)\n\t\treturn ok, nil\n\t}\n\treturn nil, nil", rows, "true"},
		"another":  {list + "\tn, _ := rows[1].(float64)\n\treturn []any{fmt.Sprint(rows[0]), n}, nil", rows, `["7615917337495251231",1]`},
		"compares": {list + "\treturn rows[1] < rows[0], nil", rows, "true"},
		"encodes":  {list + "\traw, err := json.Marshal(rows)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tvar v any\n\terr = json.Unmarshal(raw, &v)\n\treturn v, err", rows, "[7615917337495251231,1]"},
		"decodes":  {"\tvar v map[string]any\n\terr := json.NewDecoder(strings.NewReader(call.Arg(0, \"rows\").(string))).Decode(&v)\n\treturn v, err", `"{\"a\": 7615917337495251231, \"b\": 1.5}"`, `{"a":7615917337495251231,"b":1.5}`},
	}
	repaired, script := rig.Program("\treturn \"repaired\", nil"), rig.Script{}
	for method, p := range programs {
		imports := []string{}
		for _, name := range []string{"encoding/json", "fmt", "strings"} {
			if strings.Contains(p.program, name[strings.LastIndex(name, "/")+1:]+".") {
				imports = append(imports, name)
			}
		}
		script["digits."+method] = []any{rig.Program(p.program, imports...), repaired}
	}
	d := rig.Start(t, rig.NewModel(t, script))
	s := d.Session("digits")
	for method, p := range programs {
		r := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls",
			[]byte(`{"method": "`+method+`", "args": [`+p.args+`]}`), nil)
		want := p.want
		if want == "repaired" {
			want = `"repaired"`
		}
		if !strings.Contains(string(r.Body), `"value":`+want) {
			t.Errorf("%s: %s, want %s", method, r.Body, want)
		}
	}
}
