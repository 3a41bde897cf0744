package tools

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli/eject/local"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A half of a generated program: an input declares text, an output answers with it.
type half struct {
	name, body string
	args       []any
	kwargs     map[string]any
}

// Literals in halves stand for what a test puts there.
const (
	sourceURL = "http://source/"
	helper    = "generated helper"
)

// inputs are the ways in which a program gets a text. "table", "bytes" and "packed" stand for files.
var inputs = []half{
	{name: "value", body: `text := fmt.Sprint(call.Arg(0, "v"))`, args: []any{"plain <&>   ü"}},
	{name: "number", body: `text := ""
	switch n := call.Arg(0, "v").(type) {
	case json.Number:
		text = "exactly " + n.String()
	case float64:
		text = fmt.Sprint(n)
	}`, args: []any{json.Number("9007199254740993")}},
	{name: "null", body: `text := fmt.Sprint(call.Arg(0, "v") == nil, len(call.Args))`, args: []any{nil}},
	{name: "keywords", body: `text := fmt.Sprint(call.Kwargs["größe"], call.Arg(0, "func"))`, args: []any{},
		kwargs: map[string]any{"größe": "L", "func": []any{1, nil}}},
	{name: "bind", body: `var in struct {
		A string          ` + "`json:\"a\"`" + `
		B json.RawMessage ` + "`json:\"b\"`" + `
	}
	if err := call.Bind(&in); err != nil {
		return nil, err
	}
	text := in.A + string(in.B)`, args: []any{"a"}, kwargs: map[string]any{"b": map[string]any{"z": json.Number("12345678901234567890"), "a": 1.50}}},
	{name: "memory", body: `n, _ := call.Context["n"].(float64)
	call.Context["n"] = n + 1
	text := fmt.Sprint(n)`},
	{name: "open", body: `in, err := call.Open(call.Arg(0, "f"))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(in)
	text := fmt.Sprint(len(all), err)`, args: []any{"bytes"}},
	{name: "opentext", body: `in, err := call.OpenText(call.Arg(0, "f"))
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(in).ReadAll()
	text := fmt.Sprint(rows, err)`, args: []any{"table"}},
	{name: "readfile", body: `f := call.Arg(0, "f")
	one, err := call.ReadFile(f)
	if err != nil {
		return nil, err
	}
	two, err := call.ReadFile(f)
	text := fmt.Sprint(len(one), len(two), err)`, args: []any{"table"}},
	{name: "fileinfo", body: `info, err := call.FileInfo(call.Arg(0, "f"))
	text := fmt.Sprint(info, err)`, args: []any{"table"}},
	{name: "packed", body: `in, err := call.Open(call.Arg(0, "f"))
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(z)
	text := fmt.Sprint(string(all), err)`, args: []any{"packed"}},
	{name: "decoded", body: `all, err := call.ReadFile(call.Arg(0, "f"))
	if err != nil {
		return nil, err
	}
	text, err := call.DecodeText(all)
	if err != nil {
		return nil, err
	}
	_, err = call.DecodeText([]byte{0, 1, 2})
	text += fmt.Sprint(err)`, args: []any{"table"}},
	{name: "nofile", body: `_, err := call.Open("file_0")
	text := fmt.Sprint(err)`},
	{name: "fetch", body: `r, err := call.Fetch("` + sourceURL + `text")
	if err != nil {
		return nil, err
	}
	text := r.Body`},
	{name: "fetchbytes", body: `r, err := call.FetchWith(recurgent.Request{URL: "` + sourceURL +
		`bytes", Header: map[string]string{"Accept": "*/*"}})
	if err != nil {
		return nil, err
	}
	text := fmt.Sprint(r.Status, len(r.Bytes()))`},
	{name: "fetchfile", body: `f, err := call.FetchFile("` + sourceURL + `table.csv")
	if err != nil {
		return nil, err
	}
	in, err := call.OpenText(f)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(in)
	info, _ := call.FileInfo(f)
	text := fmt.Sprint(string(all), err, info)`},
	{name: "made", body: `made, err := call.Create("made here.txt", "text/plain")
	if err != nil {
		return nil, err
	}
	fmt.Fprint(made, "made")
	if err := made.Close(); err != nil {
		return nil, err
	}
	all, err := call.ReadFile(made)
	text := fmt.Sprint(string(all), err)`},
	{name: "delegate", body: `o := call.Tool("` + helper + `").Call("type", "through", nil)
	text := fmt.Sprint(o.Value, o.ErrorType)`},
	{name: "log", body: `call.Log("%d notes", 1)
	text := "noted"`},
	{name: "ask", body: `text, err := call.Ask("Is the mood good or bad?", map[string]any{"text": "thank you", "n": 1.50})
	if err != nil {
		return nil, err
	}`},
	{name: "predict", body: `got, err := call.Predict(recurgent.Signature{Instructions: "Answer.",
		Inputs:  []recurgent.Field{{Name: "question"}},
		Outputs: []recurgent.Field{{Name: "answer"}}}, map[string]any{"question": call.Arg(0, "v")})
	text := fmt.Sprint(got["answer"], err)`, args: []any{"why?"}},
	{name: "history", body: `text := ""
	for _, r := range call.HistoryPage(0, 2) {
		text += fmt.Sprint(r.MethodName, r.Args, r.OutcomeSummary["status"], ";")
	}`},
	{name: "sleep", body: `time.Sleep(time.Millisecond)
	text := "rested"`},
}

// outputs are the ways in which a program answers with a text.
var outputs = []half{
	{name: "text", body: `return text, nil`},
	{name: "list", body: `return []any{text, nil, true, 1.5}, nil`},
	{name: "object", body: `return map[string]any{"größe": text, "n": json.Number("12345678901234567890")}, nil`},
	{name: "struct", body: `return struct {
		Text string ` + "`json:\"text\"`" + `
		Rest []int  ` + "`json:\"rest\"`" + `
	}{Text: text}, nil`},
	{name: "null", body: `if text == "never" {
		return 1, nil
	}
	return nil, nil`},
	{name: "file", body: `out, err := call.Create("../out/" + call.Method, "text/plain")
	if err != nil {
		return nil, err
	}
	out.WriteString(text)
	if err := out.Close(); err != nil {
		return nil, err
	}
	return map[string]any{"report": out}, nil`},
	{name: "fail", body: `return nil, recurgent.Fail("not_today", text)`},
}

// awkward are names of methods that are words of Go, that collide as names of files, or are no names there.
var awkward = []string{"func", "Func", "type", "init", "main", "_", "go", "a b", "a_b", "a-b", "größe", "日本", "c.d",
	"x_test", "internal", "testdata", "vendor", strings.Repeat("long ", 11) + "name"}

// programOf puts two halves together.
func programOf(in, out half, source string) string {
	body := "\t" + in.body + "\n\t" + out.body
	var imports []string
	for _, name := range []string{"encoding/csv", "encoding/json", "compress/gzip", "fmt", "io", "time"} {
		if strings.Contains(body, name[strings.LastIndex(name, "/")+1:]+".") {
			imports = append(imports, name)
		}
	}
	return strings.ReplaceAll(rig.Program(body, imports...), sourceURL, source+"/")
}

// chosenHalves are the programs of a run: each input with one output or, where there is time, with all.
func chosenHalves(random *rand.Rand) (chosen [][2]half) {
	order := random.Perm(len(outputs))
	for i, in := range inputs {
		for j := range outputs {
			if j == 0 || !testing.Short() {
				chosen = append(chosen, [2]half{in, outputs[order[(i+j)%len(outputs)]]})
			}
		}
	}
	return chosen
}

// Every tool of a generated set passes its tests as plain Go, and no case is left out: tools that read files, make
// some, fetch some, delegate, remember, look back, ask a model, sleep and fail, under awkward names.
func TestGeneratedToolsEject(t *testing.T) {
	t.Parallel()
	seed := rig.Number(t, "EJECT_SEED", 1)
	t.Logf("EJECT_SEED=%d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	source := rig.NewSource(t, "")
	source.Answer(func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/csv")
		fmt.Fprint(w, "fetched\nM\xfcller,1\n")
	})
	const role = "generated röle"
	script := rig.Script{helper + ".type": {rig.Program("\treturn call.Args, nil")}}
	chosen := chosenHalves(random)
	names := slices.Clone(awkward)
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i, c := range chosen {
		if i >= len(names) {
			names = append(names, c[0].name+" "+c[1].name)
		}
		script[role+"."+names[i]] = []any{programOf(c[0], c[1], source.URL)}
	}
	m := rig.NewModel(t, script)
	m.Answer("", "", rig.Text("Answer: good"))
	d := rig.Start(t, m, "--fetch-allow", source.Host())
	files := map[string]any{}
	for name, data := range map[string]string{"table": "Name,Zahl\nM\xfcller,1\n", "bytes": "\x00\x01\x02\xff\xfe",
		"packed": packed("from within")} {
		f := d.Send("POST", "/v1/files?name="+name+".x", []byte(data),
			map[string]string{"Content-Type": "application/x-" + name}).Object(t)
		files[name] = map[string]any{"$file": f["id"]}
	}
	s := d.Session(role)
	for i, c := range chosen {
		args := slices.Clone(c[0].args)
		if len(args) == 1 && files[fmt.Sprint(args[0])] != nil {
			args[0] = files[fmt.Sprint(args[0])]
		}
		if args == nil {
			args = []any{}
		}
		kwargs := c[0].kwargs
		if kwargs == nil {
			kwargs = map[string]any{}
		}
		failing := c[1].name == "fail"
		if failing { // a first program that answers with an error alone is not kept
			d.Do(http.StatusOK, http.MethodPut, rig.MethodPath(role, names[i]),
				map[string]any{"code": script[role+"."+names[i]][0]})
		}
		r := d.Invoke(s, map[string]any{"method": names[i], "args": args, "kwargs": kwargs})
		switch {
		case failing && r.Outcome.ErrorType != "not_today", !failing && !r.Outcome.OK:
			t.Errorf("%s to %s answers %+v", c[0].name, c[1].name, r.Outcome)
		case failing, c[0].name == "history": // without a verdict the call is no evidence
			d.Do(200, "POST", "/v1/calls/"+r.CallID+"/verdict", map[string]any{"verdict": "right"})
		}
	}
	ejectsWhole(t, d, role, len(chosen)+1)
}

// ejectsWhole ejects a role, and runs the tests of the module: there is a case of each program at least, and each
// passes.
func ejectsWhole(t *testing.T, d *rig.Daemon, role string, programs int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "generated")
	var report struct {
		Methods []struct{ Method, Dir string }
		LeftOut []map[string]string `json:"left_out"`
	}
	if err := json.Unmarshal([]byte(d.Expect(0, nil, "tools", "eject", role, dir, "--output", "json")),
		&report); err != nil || len(report.Methods) != programs || len(report.LeftOut) > 0 {
		t.Errorf("%d programs, want %d; left out: %v, %v", len(report.Methods), programs, report.LeftOut, err)
	}
	cases := 0
	for _, m := range report.Methods {
		all, err := local.Cases(filepath.Join(dir, m.Dir))
		if cases += len(all); err != nil || len(all) == 0 {
			t.Errorf("%s has %d cases: %v", m.Method, len(all), err)
		}
	}
	out, err := goCommand(t, dir, "", "test", "-count=1", "-v", "./tools")
	if passed := count(out, "--- PASS: TestTools/"); err != nil || passed != cases {
		t.Errorf("%d cases passed, want %d: %v\n%s", passed, cases, err, out)
	}
}

func packed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}
