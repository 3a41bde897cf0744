package tools

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// previews are the beginnings of values by call, as a list shows them to whoever asks.
func previews(d *rig.Daemon, query string) map[string]string {
	d.T.Helper()
	out := map[string]string{}
	for _, e := range d.Get("/v1/calls?" + query)["data"].([]any) {
		if text, given := e.(map[string]any)["value_preview"]; given {
			out[e.(map[string]any)["call_id"].(string)] = text.(string)
		}
	}
	return out
}

// Lists and the stream of calls have the beginnings of values for those who ask, where the value is kept, as it is
// kept: without secrets, and of a reader's own calls alone.
func TestPreviewsOfValues(t *testing.T) {
	t.Parallel()
	echo := rig.Program("\tif call.Arg(0, \"what\") == nil {\n\t\treturn nil, recurgent.Fail(\"nothing\", \"no value\")\n\t}\n\treturn map[string]any{\"a\": call.Arg(0, \"what\"), \"z\": call.Arg(1, \"password\")}, nil")
	file := rig.WriteFile(t, "tokens",
		"ann ann-secret-of-32-characters-xxxx scopes=read,call\nben ben-secret-of-32-characters-xxxx scopes=read,call\n")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"r.m": {echo}}), "--auth-tokens-file", file)
	ann, ben := d.As("ann-secret-of-32-characters-xxxx"), d.As("ben-secret-of-32-characters-xxxx")
	s, others := ann.Session("r"), ben.Session("r")
	short, long := ann.Call(s, "m", "<b>"), ann.Call(s, "m", strings.Repeat("ö", 3000))
	failed := ann.Call(s, "m", nil)
	secret := ann.Invoke(s, map[string]any{"method": "m", "args": []any{"x"},
		"kwargs": map[string]any{"password": "hunter2hunter2"}})
	bens := ben.Call(others, "m", "of ben")

	got := previews(ann, "previews=true")
	for id, want := range map[string]string{short.CallID: `{"a":"<b>","z":null}`,
		long.CallID: `{"a":"` + strings.Repeat("ö", 74) + "…", secret.CallID: `{"a":"x","z":"[masked]"}`} {
		if got[id] != want {
			t.Errorf("%s: %s, want %s", id, got[id], want)
		}
	}
	if _, shown := got[failed.CallID]; shown || len(got) != 3 {
		t.Errorf("previews of %v", got)
	}
	if all := previews(ben, "previews=true"); len(all) != 1 || all[bens.CallID] != `{"a":"of ben","z":null}` {
		t.Errorf("another sees %v", all)
	}
	// The history of a session has them, too, of its own calls.
	history := "/v1/sessions/" + s + "/history"
	for _, record := range ann.Get(history + "?previews=true")["data"].([]any) {
		r := record.(map[string]any)
		if text, shown := r["value_preview"]; shown != (r["call_id"] != failed.CallID) || shown &&
			text != got[r["call_id"].(string)] {
			t.Errorf("the history: %v", r)
		}
	}
	if plain := ann.Send(http.MethodGet, history, nil, nil); strings.Contains(string(plain.Body), "value_preview") {
		t.Errorf("the history, unasked: %s", plain.Body)
	}
	if r := ben.Send(http.MethodGet, history+"?previews=true", nil, nil); r.Status != http.StatusNotFound {
		t.Errorf("the history of another: %d %s", r.Status, r.Body)
	}
	for _, none := range []string{"", "previews=false"} {
		if got := previews(ann, none); len(got) > 0 {
			t.Errorf("%q: %v", none, got)
		}
	}
	if r := ann.Send(http.MethodGet, "/v1/calls?previews=maybe", nil, nil); r.Status != http.StatusBadRequest {
		t.Errorf("previews=maybe: %d %s", r.Status, r.Body)
	}
	if r := ann.Send(http.MethodGet, "/v1/events?previews=maybe", nil, nil); r.Status != http.StatusBadRequest {
		t.Errorf("previews=maybe of events: %d %s", r.Status, r.Body)
	}

	// What was missed and what comes.
	stream := ben.Stream(t.Context(), "/v1/events?previews=true&after="+short.CallID, nil)
	defer func() { _ = stream.Body.Close() }()
	lines := bufio.NewScanner(stream.Body)
	event := func() string {
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				return data
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	if e := event(); !strings.Contains(e, `"value_preview":"{\"a\":\"of ben\",\"z\":null}"`) {
		t.Errorf("what was missed: %s", e)
	}
	ben.Call(others, "m", "later")
	if e := event(); !strings.Contains(e, `"value_preview":"{\"a\":\"later\",\"z\":null}"`) {
		t.Errorf("what comes: %s", e)
	}

	ann.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+s, nil)
	if got := previews(ann, "previews=true"); len(got) > 0 {
		t.Errorf("after the session was deleted: %v", got)
	}
}
