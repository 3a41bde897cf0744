package daemon

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// progCopies reads its file and makes one of each name that it is given.
var progCopiesSales = rig.Program(`	in, err := call.Open(call.Arg(0, "sales"))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	refs := []any{}
	for _, name := range call.Kwargs["names"].([]any) {
		f, err := call.Create(name.(string), "text/csv")
		if err != nil {
			return nil, err
		}
		f.Write(text)
		refs = append(refs, f.Ref())
	}
	return refs, nil`, "io")

func inDir(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// recurgentd call uploads and refers, and downloads what comes back under names that hurt nobody.
func TestCallWithFiles(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"sales.copies": {progCopiesSales}}))
	file := rig.WriteFile(t, "sales.csv", "region,units\nnorth,1\n")
	parent := t.TempDir()
	out := filepath.Join(parent, "reports")
	call := func(names string, more ...string) (string, string, int) {
		return d.Client(append([]string{"call", "sales", "copies", "--file", "sales=" + file, "--kwargs",
			"names=" + names, "--out", out}, more...)...)
	}
	stdout, stderr, code := call(`["a.csv","a.csv","../up.csv","..",".hidden","/etc/passwd","C:\\x|y","trailing. ",""]`)
	if code != 0 || !strings.HasPrefix(stdout, `[{"$file":"file_`) || strings.Count(stderr, "saved ") != 9 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	got := inDir(t, out)
	for _, want := range []string{"a.csv", ".._up.csv", "-a.csv", "_hidden", "_etc_passwd", "C__x_y", "trailing"} {
		want = strings.TrimPrefix(want, ".")
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing: %s", want, got)
		}
	}
	if inDir(t, parent) != "reports" || strings.Contains(got, ".part") {
		t.Errorf("saved: %s beside %s", got, inDir(t, parent))
	}
	if text, err := os.ReadFile(filepath.Join(out, "a.csv")); err != nil || string(text) != "region,units\nnorth,1\n" {
		t.Errorf("got %q, %v", text, err)
	}

	mine := filepath.Join(out, "mine.csv")
	rig.WriteAt(t, mine, "keep me")
	// The file in the way stays, the rest is saved, and the command that replaces it is named, and works.
	_, stderr, code = call(`["mine.csv","other.csv"]`)
	again := regexp.MustCompile(`mine\.csv exists; recurgentd (files get file_\w+ --out \S+ --overwrite) replaces it`).
		FindStringSubmatch(stderr)
	if code != 1 || again == nil || !strings.Contains(stderr, "other.csv (") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if text, _ := os.ReadFile(mine); string(text) != "keep me" {
		t.Errorf("got %q", text)
	}
	if _, stderr, code := d.Client(strings.Fields(again[1])...); code != 0 {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if text, _ := os.ReadFile(mine); string(text) != "region,units\nnorth,1\n" {
		t.Errorf("got %q", text)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"call", "sales", "copies", "--file", "nothing"}, 2, "is not NAME=FILE"},
		{[]string{"call", "sales", "copies", "--file", "a=/nowhere/at/all"}, 2, "no such file"},
		{[]string{"call", "sales", "copies", "--file", "a=" + parent}, 2, "is not a regular file"},
		{[]string{"call", "sales", "copies", "--out", mine}, 2, "is not a directory"},
		{[]string{"files", "get", "file_none"}, 3,
			"there is no file file_none (recurgentd files list lists what there is)\n"},
		{[]string{"call", "sales", "copies", file}, 1, "; --file NAME=" + file + " sends the file here"},
		{[]string{"call", "sales", "copies", "--kwargs", "sales=" + file}, 1,
			"; --file sales=" + file + " sends the file here"},
	} {
		if _, stderr, code := d.Client(c.args...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit %d: %s", c.args, code, stderr)
		}
	}
}

func TestFilesCommands(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	file := rig.WriteFile(t, "sales.csv", "region,units\nnorth,1\n")
	run := func(want int, args ...string) string {
		t.Helper()
		stdout, stderr, code := d.Client(append([]string{"files"}, args...)...)
		if code != want {
			t.Fatalf("files %v: exit %d, want %d: %s", args, code, want, stderr)
		}
		return stdout
	}
	id := strings.TrimSpace(run(0, "put", file))
	if list := run(0, "list"); !strings.Contains(list, id) || !strings.Contains(list, "text/csv") ||
		!strings.Contains(list, "sales.csv") {
		t.Errorf("list: %s", list)
	}
	out := t.TempDir()
	run(0, "get", id, "--out", out)
	if text, err := os.ReadFile(filepath.Join(out,
		"sales.csv")); err != nil || string(text) != "region,units\nnorth,1\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if got := run(0, "rm", id); got != "deleted "+id+"\n" {
		t.Errorf("rm: %s", got)
	}
	run(3, "get", id, "--out", t.TempDir())
	piped := rig.Command(t, []string{"RECURGENT_URL=" + d.URL}, "files", "put", "-", "--output", "json")
	piped.Stdin = strings.NewReader("from a pipe")
	if made, err := piped.Output(); err != nil || !strings.Contains(string(made), `"bytes":11`) {
		t.Errorf("standard input: %s, %v", made, err)
	}
	if empty := strings.TrimSpace(run(0, "put", rig.WriteFile(t, "empty.txt", ""), "--output",
		"json")); !strings.Contains(empty, `"bytes":0`) {
		t.Errorf("an empty file: %s", empty)
	}
}
