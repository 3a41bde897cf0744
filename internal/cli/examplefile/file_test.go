package examplefile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// YAML and JSON are equivalent. Digits and text stay unchanged, and each example has its line.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, text string }{
		{"tax.yaml", `# what people expect
role: tax
method: net
examples:
  - args: [1000, 12345678901234567890, 1.10, 0x10, 2026-11-22, yes, "5", null, ~]
    kwargs: {rate: 0.3}
    expect: {value: 700}
    note: |
      two
      lines

  - args: []
    expect:
      error_type: invalid_input
    tolerance: 0.5
`},
		{"tax.JSON", `{"role": "tax", "method": "net",
 "examples": [

  {"args": [1000, 12345678901234567890, 1.10, 16, "2026-11-22", "yes", "5", null, null],
   "kwargs": {"rate": 0.3}, "expect": {"value": 700}, "note": "two\nlines\n"},



  {"args": [],
   "expect": {"error_type": "invalid_input"}, "tolerance": 0.5}]}`},
	} {
		f, err := Parse(c.path, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if f.Role != "tax" || f.Method != "net" || len(f.Examples) != 2 {
			t.Fatalf("%s: %+v", c.path, f)
		}
		for i, want := range []string{
			`{"args":[1000,12345678901234567890,1.10,16,"2026-11-22","yes","5",null,null],"kwargs":{"rate":0.3},"expect":{"value":700},"note":"two\nlines\n"}`,
			`{"args":[],"expect":{"error_type":"invalid_input"},"tolerance":0.5}`,
		} {
			if got := string(f.Examples[i].JSON); got != want {
				t.Errorf("%s: example %d is %s, want %s", c.path, i, got, want)
			}
		}
		if c.path == "tax.yaml" && (f.Examples[0].Line != 5 || f.Examples[1].Line != 12) || c.path == "tax.JSON" &&
			(f.Examples[0].Line != 4 || f.Examples[1].Line != 9) {
			t.Errorf("%s: lines %d and %d", c.path, f.Examples[0].Line, f.Examples[1].Line)
		}
	}
}

// Every error names the file, the line and the remedy.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"a.yaml", "", "a.yaml: is empty"},
		{"orders.csv", "region;caf\xe9\n", "orders.csv: is not text in UTF-8; files of examples are YAML or JSON"},
		{"a.yaml", "# nothing\n", "a.yaml: is empty"},
		{"a.yaml", "- 1\n", "a.yaml:1: must be an object"},
		{"a.yaml", "role: tax\nmethod: net\n", "a.yaml:1: has no examples"},
		{"a.yaml", "role: tax\nrule: x\n", `a.yaml:2: "rule" is not a known member: role, method, examples`},
		{"a.yaml", "role: tax\nrole: tax\n", `a.yaml:2: "role" appears twice`},
		{"a.yaml", "role: 5\n", "a.yaml:1: role must be text"},
		{"a.yaml", "examples: 5\n", "a.yaml:1: examples must be a list"},
		{"a.yaml", "examples:\n  - args: [1]\n", "a.yaml:2: the example has no expect"},
		{"a.yaml", "examples:\n  - args: 1\n    expect: {value: 1}\n", "a.yaml:2: args must be a list"},
		{"a.yaml", "examples:\n  - kwargs: 1\n    expect: {value: 1}\n", "a.yaml:2: kwargs must be an object"},
		{"a.yaml", "examples:\n  - arg: [1]\n    expect: {value: 1}\n", `a.yaml:2: "arg" is not a known member: id, args`},
		{"a.yaml", "examples:\n  - args: [1]\n    expect: 1\n", "a.yaml:3: expect must have exactly one of"},
		{"a.yaml", "examples:\n  - args: [1]\n    expect: {value: 1, schema: {}}\n",
			"a.yaml:3: expect must have exactly one of"},
		{"a.yaml", "examples:\n  - args: [1]\n    expect: {values: 1}\n", `a.yaml:3: "values" is not a known member: value`},
		{"a.yaml", "examples:\n  - args: [.nan]\n    expect: {value: 1}\n", "a.yaml:2: .nan has no JSON form"},
		{"a.yaml", "examples:\n  - args: &a [1]\n    expect: {value: *a}\n", "a.yaml:2: anchors and aliases"},
		{"a.yaml", "examples:\n  - args: [!!binary aGk=]\n    expect: {value: 1}\n",
			"a.yaml:2: values of the kind !!binary"},
		{"a.yaml", "role: tax\n  method: net\n", "a.yaml:2: "},
		{"a.yaml", "examples: []\n---\nexamples: []\n", "a.yaml:2: has a second document"},
		{"a.yml", "examples:\n- args: " + strings.Repeat("[", 300) + strings.Repeat("]", 300) +
			"\n  expect: {value: 1}\n", "a.yml:2: is nested too deeply"},
		{"a.json", "", "a.json:1: ends too early"},
		{"a.json", "{\"role\":\n \"tax\"\n 5]", "a.json:3: "},
		{"a.json", "{\"role\": \"tax\"", "a.json:1: ends too early"},
		{"a.json", "{\"examples\": []}\n\n{}", "a.json:3: has text after the end of its document"},
		{"a.json", "{\"examples\": [\n{\"args\": [1]}]}", "a.json:2: the example has no expect"},
		{"a.json", strings.Repeat("[", 300), "a.json:1: is nested too deeply"},
	} {
		_, err := Parse(c.name, []byte(c.text))
		var bad *Error
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(pipe); err == nil || !strings.HasSuffix(err.Error(), "pipe.yaml: is not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := Read(filepath.Join(t.TempDir(),
		"none.yaml")); err == nil || !strings.HasSuffix(err.Error(), "none.yaml: no such file or directory") {
		t.Errorf("got %v", err)
	}
}

// Folders are read recursively, in order. Hidden folders, other names and links are skipped.
func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"tax/net.yaml", "b.json", "a.YML", "README.md", ".git/x.yaml", "tax/deep/x.yml"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "b.json"), filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	got, err := Find(dir, filepath.Join(dir, "README.md"))
	// A named file is read whatever its extension.
	want := []string{"a.YML", "b.json", "tax/deep/x.yml", "tax/net.yaml", "README.md"}
	for i := range got {
		got[i], _ = filepath.Rel(dir, got[i])
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := Find(filepath.Join(dir, "none")); err == nil ||
		!strings.HasSuffix(err.Error(), "none: no such file or directory") {
		t.Errorf("got %v", err)
	}
}

// Every file is read as JSON or rejected, and every error has a line.
func FuzzParse(f *testing.F) {
	f.Add("a.yaml", "role: tax\nmethod: net\nexamples:\n  - args: [1, x, 1e3, 0o7, 1_000, .inf]\n    expect: {value: {a: [null]}}\n")
	f.Add("a.json", `{"role":"tax","examples":[{"expect":{"value":"\ud83d\ude00\u0000"}}]}`)
	f.Fuzz(func(t *testing.T, path, text string) {
		file, err := Parse(path, []byte(text))
		var bad *Error
		switch {
		case err != nil && !errors.As(err, &bad):
			t.Errorf("%q: the error names no place: %v", text, err)
		case err == nil:
			for _, x := range file.Examples {
				if !json.Valid(x.JSON) || x.Line < 1 {
					t.Errorf("%q: line %d: %s", text, x.Line, x.JSON)
				}
			}
		}
	})
}
