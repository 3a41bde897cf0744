package daemon

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// download gets a file with a client that checks nothing. err says that the body did not end as a whole one does.
func download(d *rig.Daemon, id, ranged string) (status int, body []byte, err error) {
	d.T.Helper()
	r, err := http.NewRequest(http.MethodGet, d.URL+"/v1/files/"+id+"/content", nil)
	if err != nil {
		d.T.Fatal(err)
	}
	if ranged != "" {
		r.Header.Set("Range", ranged)
	}
	resp, err := (&http.Client{Timeout: rig.Patience}).Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// A stored file that has other bytes than were uploaded, or a link or a pipe in its place, is served to nobody: a small
// one and a range are refused, a large download ends in an error before its end, and a program does not read it. The
// others are served as ever, and so is it when it is back.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"sales.total": {progSums}}))
	if _, shared := d.Rows("SELECT 1"); shared {
		t.Skip("damages files of a data directory")
	}
	header := "region,units\n"
	texts := map[string]string{"small": header + "north,1\n", "large": header + strings.Repeat("north,1\nsouth,2\n",
		100_000), "sound": header + "south,2\n"}
	ids, totals := map[string]string{}, map[string]any{"small": map[string]any{"north": 1},
		"large": map[string]any{"north": 100_000, "south": 200_000}, "sound": map[string]any{"south": 2}}
	s := d.Session("sales")
	for name, text := range texts {
		ids[name], _ = upload(d, http.StatusCreated, "?name="+name, "text/csv", text)["id"].(string)
	}
	served := func(name string) {
		t.Helper()
		if status, body, err := download(d, ids[name], ""); status != http.StatusOK || err != nil ||
			string(body) != texts[name] {
			t.Errorf("%s: got %d with %d bytes, %v", name, status, len(body), err)
		}
		if status, body, err := download(d, ids[name],
			"bytes=0-5"); status != http.StatusPartialContent || err != nil || string(body) != "region" {
			t.Errorf("%s, a range: got %d %q, %v", name, status, body, err)
		}
		if r := d.Call(s, "total", map[string]any{"$file": ids[name]}); !rig.Equal(totals[name], r.Outcome.Value) {
			t.Errorf("%s: the program answers %v", name, r.Outcome)
		}
	}
	for name := range texts {
		served(name)
	}
	agent := overHTTP(t, d, newest)
	elsewhere := t.TempDir()
	for _, name := range []string{"small", "large"} {
		file, kept := filepath.Join(d.State(), "files", ids[name]), filepath.Join(elsewhere, name)
		for kind, damage := range map[string]func() error{
			"its last byte": func() error {
				return os.WriteFile(file, append([]byte(texts[name][:len(texts[name])-1]), '!'), 0o600)
			},
			"cut off":     func() error { return os.WriteFile(file, []byte(texts[name][:len(texts[name])-1]), 0o600) },
			"a link":      func() error { return os.Symlink(kept, file) }, // to the same bytes
			"a pipe":      func() error { return unix.Mkfifo(file, 0o600) },
			"a directory": func() error { return os.Mkdir(file, 0o700) },
		} {
			if err := os.Rename(file, kept); err != nil {
				t.Fatal(err)
			}
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			before := d.Metric("recurgent_damaged_files_total")
			status, body, err := download(d, ids[name], "")
			if refused := status == http.StatusInternalServerError &&
				bytes.Contains(body, []byte(`"file_damaged"`)); !refused &&
				(name == "small" || err == nil || len(body) >= len(texts[name])) {
				t.Errorf("%s, %s: got %d with %d bytes, %v", name, kind, status, len(body), err)
			}
			if status, body, err := download(d, ids[name],
				"bytes=0-5"); status != http.StatusInternalServerError || err != nil ||
				!bytes.Contains(body, []byte(`"file_damaged"`)) {
				t.Errorf("%s, %s, a range: got %d %q, %v", name, kind, status, body, err)
			}
			if got := d.Call(s, "total",
				map[string]any{"$file": ids[name]}); got.Outcome.ErrorType != "file_not_found" ||
				!strings.Contains(got.Outcome.ErrorMessage, "is damaged: upload it again") {
				t.Errorf("%s, %s: the program answers %+v", name, kind, got.Outcome)
			}
			if n := d.Metric("recurgent_damaged_files_total") - before; n != 3 {
				t.Errorf("%s, %s: counted %v times, want 3", name, kind, n)
			}
			if r, err := agent.ReadResource(t.Context(),
				&mcp.ReadResourceParams{URI: "recurgent://files/" + ids[name]}); err == nil ||
				!strings.Contains(err.Error(), "the file is damaged") {
				t.Errorf("%s, %s, as a resource: %v, %v", name, kind, r, err)
			}
			served("sound")
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(kept, file); err != nil {
				t.Fatal(err)
			}
			served(name)
		}
	}
	if said := d.Output.String(); !strings.Contains(said, "has other bytes than were stored") ||
		!strings.Contains(said, ids["large"]) {
		t.Error("the log says nothing of the damage")
	}
	if a := d.Artifact("sales", "total"); a["intrinsic_failure_count"] != float64(0) {
		t.Errorf("the program is blamed: %v", a)
	}
}
