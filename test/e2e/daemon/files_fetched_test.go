package daemon

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// progTable fetches a table and answers with its rows and the file; for the argument 1 it fails.
func progTable(url, onFailure string) string {
	return rig.Program(`	f, err := call.FetchFile("`+url+`/report.csv")
	if err != nil {
		return nil, err
	}
	in, err := call.OpenText(f)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.Comma = ';'
	rows, err := r.ReadAll()
	if err != nil {
		return nil, recurgent.Fail("parse_failed", err.Error())
	}
	if call.Arg(0, "n") == 1.0 {
		`+onFailure+`
	}
	if call.Arg(0, "n") == 2.0 {
		return len(rows), nil
	}
	return map[string]any{"rows": rows, "file": f}, nil`, "encoding/csv")
}

// disposed answers with a table of windows-1252 under a name.
func disposed(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/csv")
	w.Header().Set("Content-Disposition", `attachment; filename="../Umsatz.csv"`)
	fmt.Fprint(w, "Name;Ort\nM\xfcller;K\xf6ln\n")
}

// A program fetches a file, reads it within the same run, and returns it: it is kept under the name and the type that
// the host gave it. One that is not returned is removed. Replays, and the proof of a repaired program, have its bytes
// without the host.
func TestFetchedFiles(t *testing.T) {
	t.Parallel()
	source := rig.NewSource(t, "")
	source.Answer(disposed)
	m := rig.NewModel(t, rig.Script{"sales.table": {progTable(source.URL, `panic("one")`),
		progTable(source.URL, "rows = rows[:1]")}})
	d := rig.Start(t, m, "--fetch-allow", "public,"+source.Host())
	s := d.Session("sales")
	rows := []any{[]any{"Name", "Ort"}, []any{"Müller", "Köln"}}
	got := d.Call(s, "table", 0)
	value, _ := got.Outcome.Value.(map[string]any)
	file, _ := value["file"].(map[string]any)
	if fmt.Sprint(value["rows"]) != fmt.Sprint(rows) ||
		string(content(d, file).Body) != "Name;Ort\nM\xfcller;K\xf6ln\n" {
		t.Fatalf("got %+v", got.Outcome)
	}
	if f := d.Get("/v1/files/" + fmt.Sprint(file["$file"])); f["name"] != "Umsatz.csv" ||
		f["media_type"] != "text/csv" || f["call_id"] != got.CallID || f["session_id"] != s {
		t.Errorf("the file: %v", f)
	}
	counted := d.Call(s, "table", 2)
	d.WantValue(counted, 2.0, "persisted")
	if list := d.List("/v1/files"); len(list) != 1 {
		t.Errorf("%d files are kept, want the one that was returned", len(list))
	}
	log := d.LogOf(counted)
	if fetches, _ := log["fetches"].([]any); len(fetches) == 1 {
		if f := fetches[0].(map[string]any); f["status"] != 200.0 || f["url"] != source.URL+"/report.csv" {
			t.Errorf("the log: %v", f)
		}
	}
	source.Close()
	for _, id := range []string{got.CallID, counted.CallID} {
		if r := d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+id+"/replay", nil).Object(t); r["equal"] != true {
			t.Errorf("replay of %s: %v", id, r)
		}
	}
	manifest := d.Get("/v1/tools/sales/methods/table/effects")
	if text := string(rig.MustJSON(manifest)); !strings.Contains(text, source.Host()) &&
		!strings.Contains(text, "127.0.0.1") || !strings.Contains(text, `"GET"`) ||
		!strings.Contains(text, "text/csv") {
		t.Errorf("the manifest: %s", text)
	}
	if why := string(rig.MustJSON(d.Get("/v1/calls/" + counted.CallID +
		"/why"))); !strings.Contains(why, "GET "+source.URL+"/report.csv") {
		t.Errorf("why: %s", why)
	}
}

// A repaired program is held to what its predecessor made of a fetched file, which nobody has to send again.
func TestRepairsKeepWhatFetchedFilesShowed(t *testing.T) {
	t.Parallel()
	source := rig.NewSource(t, "")
	source.Answer(disposed)
	worse := strings.Replace(progTable(source.URL, "rows = rows[:1]"), "return len(rows), nil", "return 7, nil", 1)
	m := rig.NewModel(t, rig.Script{"sales.table": {progTable(source.URL, `panic("one")`), worse,
		progTable(source.URL, "rows = rows[:1]")}})
	d := rig.Start(t, m, "--fetch-allow", "public,"+source.Host())
	s := d.Session("sales")
	d.WantValue(d.Call(s, "table", 2), 2.0, "generated")
	asked := source.Requests()
	one := d.Call(s, "table", 1)
	if value, _ := one.Outcome.Value.(map[string]any); one.Program.Source != "generated" || len(m.Questions()) != 3 ||
		value == nil || len(value["rows"].([]any)) != 1 {
		t.Errorf("got %+v of %+v after %d requests", one.Outcome, one.Program, len(m.Questions()))
	}
	// the failing run and that of the program which answers; a proof asks nobody
	if n := source.Requests() - asked; n != 2 {
		t.Errorf("the host was asked %d times", n)
	}
}

// An answer with another status than 2xx is an error of the kind that programs return for it; who refuses at
// first is not held against the program.
func TestFilesThatAreNotThere(t *testing.T) {
	t.Parallel()
	source := rig.NewSource(t, "")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"sales.table": {progTable(source.URL, "")}}), "--fetch-allow",
		"public,"+source.Host(), "--file-max", "1MiB")
	s := d.Session("sales")
	source.Answer(disposed)
	d.Call(s, "table", 0)
	for status, want := range map[int]string{404: "not_found", 403: "fetch_failed", 500: "fetch_failed",
		503: "fetch_failed"} {
		source.Status(status)
		got := d.Call(s, "table", 2)
		d.WantError(got, want)
		if got.Program.Source != "persisted" || got.Outcome.Retriable != (status >= 500) ||
			!strings.Contains(got.Outcome.ErrorMessage, fmt.Sprint(status)) {
			t.Errorf("%d: got %+v of %+v", status, got.Outcome, got.Program)
		}
	}
	source.Answer(func(w http.ResponseWriter) {
		for range 17 {
			_, _ = w.Write(make([]byte, 64<<10))
		}
	})
	d.WantError(d.Call(s, "table", 2), "resource_exhausted")
	if list := d.List("/v1/files"); len(list) != 1 {
		t.Errorf("%d files are kept", len(list))
	}
}

// A file that a program has fetched or made may be read by the tools that it calls, before it is kept, and is kept
// where the first program returns it.
func TestFilesGoToOtherTools(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	w, err := z.Create("a.txt")
	if err == nil {
		_, err = w.Write([]byte("inside\n"))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	source := rig.NewSource(t, "")
	source.Answer(func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(packed.Bytes())
	})
	fetches := rig.Program("\tf, err := call.FetchFile(\"" + source.URL +
		"/a.zip\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tout := call.Tool(\"archive\").Call(\"first\", f)\n\tif !out.OK() {\n\t\treturn nil, recurgent.Fail(out.ErrorType, out.ErrorMessage)\n\t}\n\treturn []any{out.Value, f}, nil")
	looks := rig.Program("\tdata, err := call.ReadFile(call.Arg(0, \"archive\"))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn string(data[:2]), nil")
	m := rig.NewModel(t, rig.Script{"feed.read": {fetches}, "archive.first": {looks}})
	d := rig.Start(t, m, "--fetch-allow", "public,"+source.Host())
	s := d.Session("feed")
	for range 2 {
		got := d.Call(s, "read")
		value, _ := got.Outcome.Value.([]any)
		if len(value) != 2 || value[0] != "PK" || !bytes.Equal(content(d, value[1].(map[string]any)).Body,
			packed.Bytes()) {
			t.Fatalf("got %+v", got.Outcome)
		}
	}
	if q := m.Requests()[1].Text; !strings.Contains(q, `"a.zip"`) || !strings.Contains(q, "a.txt (7 bytes)") {
		t.Errorf("the model that writes for the archive was asked with:\n%s", q)
	}
}
