package tools

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

var progLineCount = rig.Program(`	in, err := call.Open(call.Arg(0, "table"))
	if err != nil {
		return nil, err
	}
	lines := 0
	for s := bufio.NewScanner(in); s.Scan(); {
		lines++
	}
	return lines, nil`, "bufio")

// storedFiles returns the names of a daemon's files with their ids.
func storedFiles(d *rig.Daemon) map[string]string {
	names := map[string]string{}
	for _, f := range d.Get("/v1/files")["data"].([]any) {
		f := f.(map[string]any)
		names[f["name"].(string)] = f["id"].(string)
	}
	return names
}

// Examples that read files hold in another daemon, too: tools import uploads the files. Those of a method that is
// refused do not stay, and what the daemon has is not uploaded again.
func TestImportBringsTheFilesOfExamples(t *testing.T) {
	t.Parallel()
	d, other := rig.Start(t, nil), rig.Start(t, nil)
	for name, lines := range map[string]string{"good": "a\nb\n", "bad": "a\nb\nc\n"} {
		f := d.Send(http.MethodPost, "/v1/files?name="+name+".csv", []byte(lines),
			map[string]string{"Content-Type": "text/csv"}).Object(t)
		put(d, "table", name, progLineCount, string(rig.Encode(t, []any{
			map[string]any{"args": []any{map[string]any{"$file": f["id"]}},
				"expect": map[string]any{"value": len(lines) / 2}}})))
	}
	dir := filepath.Join(t.TempDir(), "table")
	d.Expect(0, []string{"written to"}, "tools", "eject", "table", dir)
	editFile(t, filepath.Join(dir, "tools", "table_bad", "program.go"), "return lines, nil", "return lines + 1, nil")
	other.Expect(1, []string{"imported", "it does not hold 1 example of 1", "answers 4"}, "tools", "import", dir)
	files := storedFiles(other)
	if files["good.csv"] == "" || len(files) != 1 {
		t.Fatalf("the files are %v", files)
	}
	run := other.Do(http.StatusOK, http.MethodPost, "/v1/tools/table/methods/good/examples/run",
		map[string]any{}).Object(t)
	if run["passed"] != 1.0 {
		t.Errorf("the example of the file: %v", run)
	}
	if body := other.Send(http.MethodGet, "/v1/files/"+files["good.csv"]+"/content", nil,
		nil).Body; string(body) != "a\nb\n" {
		t.Errorf("the file is %q", body)
	}
	other.Expect(1, []string{"unchanged"}, "tools", "import", dir)
	other.Expect(1, []string{"unchanged"}, "tools", "import", dir, "--replace")
	d.Expect(1, []string{"unchanged"}, "tools", "import", dir, "--replace")
	if again := storedFiles(d); len(again) != 2 {
		t.Errorf("the daemon that had the files has %v", again)
	}
	editFile(t, filepath.Join(dir, "tools", "table_good", "recorded.json"), `"testdata/`, `"../testdata/`)
	other.Expect(2, []string{"is not below the method"}, "tools", "import", dir)
}
