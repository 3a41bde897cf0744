package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Examples come from a file before the method exists: its first program must hold them. A program is tried beside the
// one that serves, and what is printed of a program can be put back.
func TestExampleCommands(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {share("60"), share("70")}})
	d := rig.Start(t, m)
	file := rig.WriteFile(t, "net.json",
		"{\"role\": \"tax\", \"method\": \"net\", \"examples\": [\n  {\"args\": [1000], \"expect\": {\"value\": 700}},\n  {\"args\": [\"x\"], \"expect\": {\"error_type\": \"invalid_input\"}}]}")
	d.Expect(1, []string{"FAIL  tax.net(1000): no program of this method is kept yet  " + file + ":2",
		"2 of 2 examples failed"}, "test", file)
	d.Expect(0, []string{"active  (1000)", "error invalid_input"}, "tools", "examples", "put", file)
	d.Expect(1, []string{"no program of this method is kept yet"}, "test", file)
	if value, _ := askedByCommand(d, "tax", "net", "1000"); value != "700" || len(m.Questions()) != 2 {
		t.Errorf("tax.net(1000) is %s after %d requests: the first program must hold the examples", value,
			len(m.Questions()))
	}
	d.Expect(0, []string{"2 passed, 0 failed, 0 skipped"}, "test", file)
	d.Expect(0, []string{"passed"}, "tools", "examples", "run", "tax", "net")

	candidate := rig.WriteFile(t, "net.go", share("80"))
	d.Expect(1, []string{"WHAT             SERVES                         CANDIDATE\n",
		"answer           -3.5                           -4\n", "2 passed, 0 failed, 0 skipped",
		"1 passed, 1 failed, 0 skipped",
		"1 same, 0 changed", "0 same, 1 changed", "earlier answers that would change:", "  700  800\n",
		"it does not hold 1 example"}, "tools", "try", "tax", "net", "-5", "--code", candidate)
	d.Expect(0, []string{`"serves":{`, `"candidate":null`, `"value":700`}, "tools", "try", "tax", "net", "--args",
		"[1000]", "--no-fetch", "--output", "json")
	d.Expect(1, []string{"failed", "800"}, "tools", "examples", "run", "tax", "net", "--code", candidate)
	d.Expect(0, []string{"answer           -       10"}, "tools", "try", "tax", "other", "5", "--code",
		rig.WriteFile(t, "x.go", share("200")))
	d.Expect(2, []string{"cannot be used together"}, "tools", "try", "tax", "net", "--code", candidate, "--generation",
		"gen-1")
	d.Expect(2, []string{"not a JSON array"}, "tools", "try", "tax", "net", "--args", "5")

	code := d.Expect(0, []string{"package tool\n", "* 70 / 100"}, "tools", "show", "tax", "net", "--code")
	d.Expect(0, []string{"tax.net: "}, "tools", "put", "tax", "net", rig.WriteFile(t, "again.go", code))
	if again := d.Expect(0, nil, "tools", "show", "tax", "net", "--code"); again != code {
		t.Errorf("what was put is printed as\n%s\nwant\n%s", again, code)
	}
	d.Expect(2, []string{"--code needs a role and a method"}, "tools", "show", "tax", "--code")
}

// Bad files name the place, each on a line, and nothing is run; what only the daemon can see is placed, too.
func TestBadExampleFiles(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {share("60")}})
	d := rig.Start(t, m)
	askedByCommand(d, "tax", "net", "1000")
	dir := t.TempDir()
	rig.WriteAt(t, filepath.Join(dir, "a", "good.yaml"),
		"role: tax\nmethod: net\nexamples:\n  - args: [1000]\n    expect: {value: 600}\n")
	rig.WriteAt(t, filepath.Join(dir, "b.yaml"), "role: tax\nmethod: net\nexamples:\n  - args: [1]\n    expected: 1\n")
	rig.WriteAt(t, filepath.Join(dir, "c.json"), "{\"examples\":\n[]}")
	out := d.Expect(2, []string{filepath.Join(dir, "b.yaml") + `:5: "expected" is not a known member: id, args`,
		filepath.Join(dir, "c.json") + ":1: must name a role and a method", "2 files with errors; nothing was run"},
		"test", dir)
	if out != "" {
		t.Errorf("something was run: %s", out)
	}
	d.Expect(0, []string{"1 passed"}, "test", filepath.Join(dir, "a"))
	d.Expect(2, []string{"there are no example files"}, "test", t.TempDir())
	d.Expect(2, []string{"no such file or directory"}, "test", filepath.Join(dir, "none"))
	twice := rig.WriteFile(t, "twice.yaml",
		"role: tax\nmethod: net\nexamples:\n  - args: [1]\n    expect: {value: 1}\n  - args: [1]\n    expect: {value: 2}\n")
	for _, args := range [][]string{{"test", twice}, {"tools", "examples", "put", "tax", "net", twice}} {
		d.Expect(2, []string{twice + ":6: "}, args...)
	}
	d.Expect(2, []string{"has the examples of tax.net"}, "tools", "examples", "put", "tax", "other", twice)
	d.Expect(3, []string{"cannot reach"}, "test", filepath.Join(dir, "a"), "--url", "http://127.0.0.1:1")
}

// A prediction by a signature, declared or named, out of JSON, YAML and words.
func TestPredictCommand(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text("Answer: Paris"))
	d := rig.Start(t, m)
	const signature = `{"instructions": "Answer.", "inputs": [{"name": "question"}], "outputs": [{"name": "answer"}]}`
	out := d.Expect(0, nil, "predict", "--signature", signature, "question=Capital of France?")
	if out != "{\n  \"answer\": \"Paris\"\n}\n" {
		t.Errorf("it prints %q", out)
	}
	file := rig.WriteFile(t, "qa.yaml",
		"instructions: Answer.\ninputs: [{name: question}]\noutputs:\n  - name: answer\n")
	d.Expect(0, []string{`"outputs":{"answer":"Paris"}`, `"attempts":1`}, "predict", "--signature", "@"+file,
		"--inputs", `{"question": "x"}`, "--demos", `[{"question": "1+1?", "answer": "2"}]`, "--json")
	if q := m.LastQuestion(); !strings.Contains(q.System+q.User, "x") {
		t.Errorf("the model was asked %q", q.User)
	}
	d.Do(201, "PUT", "/v1/signatures/qa", rig.ParseJSON(signature))
	d.Expect(0, []string{`"answer": "Paris"`}, "predict", "qa", "question=why")
	d.Expect(2, []string{"needs the NAME of a signature"}, "predict", "question=why")
	d.Expect(2, []string{"is not INPUT=VALUE"}, "predict", "qa", "why")
	d.Expect(2, []string{"is not JSON"}, "predict", "--signature", "{", "a=b")
	d.Expect(2, []string{":2: "}, "predict", "--signature", "@"+rig.WriteFile(t, "bad.yaml", "a: b\n  c: d\n"), "a=b")
	d.Expect(3, []string{"404"}, "predict", "none", "a=b")
}

// An export of a daemon by its URL needs no data directory here.
func TestExportByURL(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	askedByCommand(d, "calculator", "add", "2", "3")
	elsewhere := t.TempDir()
	env := rig.Environment(elsewhere)
	archive := filepath.Join(elsewhere, "backup.tar.gz")
	for _, run := range []struct {
		env  []string
		args []string
		code int
		want string
	}{
		{env, []string{"store", "export", archive}, 2, "no data directory"},
		{env, []string{"store", "export"}, 2, "--url asks a running daemon"},
		{env, []string{"store", "export", archive, "--url", "http://127.0.0.1:1"}, 1, "cannot reach the daemon"},
		{env, []string{"store", "export", archive, "--url", d.URL}, 0, "holds the content of the daemon at " + d.URL},
		{append(rig.Environment(elsewhere), "RECURGENT_URL="+d.URL), []string{"store", "export", archive + ".2"}, 0,
			""},
		{env, []string{"store", "import", archive}, 0, "1 artifacts"},
		{append(rig.Environment(elsewhere), "RECURGENT_URL="+d.URL), []string{"store", "export", archive + ".3"}, 0,
			"--url " + d.URL + " asks it"},
	} {
		out, errs, code := rig.Run(t, run.env, run.args...)
		if code != run.code || !strings.Contains(out+errs, run.want) {
			t.Errorf("%q: %d, %s%s, want %d and %q", run.args, code, out, errs, run.code, run.want)
		}
	}
}
