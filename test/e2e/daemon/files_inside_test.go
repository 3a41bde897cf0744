package daemon

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// beside sums the bytes of what is stored beside the files.
func beside(d *rig.Daemon) (bytes int64) {
	d.T.Helper()
	err := filepath.WalkDir(d.State(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "/files/") {
			return nil // what goes while it is looked at does not count
		}
		if info, err := e.Info(); err == nil && !strings.HasSuffix(path, ".wal") { // segments are laid out ahead
			bytes += info.Size()
		}
		return nil
	})
	if err != nil {
		d.T.Fatal(err)
	}
	return bytes
}

// Large arguments and values lie beside the logs. Replies, and what is asked of the call, are as they were; what is
// over goes.
func TestLargeValuesAreFilesInside(t *testing.T) {
	t.Parallel()
	d, ahead := rig.StartAhead(t, rig.NewModel(t, rig.Script{"echo.run": {rig.ProgEcho},
		"echo.size": {rig.Program("\ttext, _ := call.Arg(0, \"text\").(string)\n\treturn len(text), nil")}}))
	s := d.Session("echo")
	d.Call(s, "run", "small")
	before := beside(d)
	large, named := strings.Repeat("x", 600<<10), strings.Repeat("y", 400<<10)
	body := rig.Encode(t, map[string]any{"method": "run", "args": []any{large, "small"},
		"kwargs": map[string]any{"text": named, "n": 1}})
	header := map[string]string{"Idempotency-Key": "once"}
	first := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", body, header)
	var got rig.Reply
	if err := json.Unmarshal(first.Body, &got); err != nil || !got.Outcome.OK {
		t.Fatalf("status %d, %v", first.Status, err)
	}
	value, _ := got.Outcome.Value.(map[string]any)
	want := map[string]any{"args": []any{large, "small"}, "kwargs": map[string]any{"text": named, "n": 1.0}}
	if !rig.Equal(want, value) {
		t.Error("the value is not what was sent")
	}
	d.Call(s, "size", large)
	check := func() {
		t.Helper()
		if again := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", body,
			header); string(again.Body) != string(first.Body) || again.Header.Get("Idempotent-Replayed") == "" {
			t.Errorf("the same request again: status %d, %d bytes, want %d", again.Status, len(again.Body),
				len(first.Body))
		}
		entry := d.Get("/v1/calls/" + got.CallID)
		if !rig.Equal([]any{large, "small"}, entry["args"]) || !rig.Equal(want["kwargs"], entry["kwargs"]) {
			t.Errorf("the log entry has other arguments")
		}
		if o, _ := entry["outcome"].(map[string]any); o == nil || !rig.Equal(want, o["value"]) {
			t.Errorf("the log entry has another value: %.200v", entry["outcome"])
		}
		if record := d.History(s)[1]; !rig.Equal([]any{large, "small"}, record["args"]) ||
			!rig.Equal(want["kwargs"], record["kwargs"]) {
			t.Errorf("the history has other arguments")
		}
		if list := d.List("/v1/files"); len(list) != 0 {
			t.Errorf("parts are listed: %v", list)
		}
	}
	check()
	d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+got.CallID+"/replay", nil)
	if d.Get("/v1/calls/" + got.CallID)["error"] != nil {
		t.Error("the call failed")
	}
	d.Restart()
	check()
	if now := beside(d); now > before+200<<10 {
		t.Errorf("beside the files %d bytes are stored, %d before", now, before)
	}
	parts := func() (n int) {
		for _, name := range stored(d) {
			if strings.HasPrefix(name, "files/") { // and nothing that the store writes its own things to
				n++
			}
		}
		return n
	}
	young := parts()
	ahead("30h")
	rig.Until(t, "values to expire", func() bool { return parts() < young })
	entry := d.Get("/v1/calls/" + got.CallID)
	if o, _ := entry["outcome"].(map[string]any); o["value"] != nil ||
		!rig.Equal([]any{large, "small"}, entry["args"]) {
		t.Errorf("after its time: outcome %.200v", entry["outcome"])
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+s, nil)
	wantStored(t, d, 0)
}
