package daemon

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// namings are requests that change or use what an id names. Their path has the id as %s; kind says of what it is.
var namings = []struct {
	kind, method, path string
	body               any
}{
	{"id", http.MethodPost, "/v1/sessions/%s/calls", map[string]any{"method": "greet", "args": []any{"x"}}},
	{"id", http.MethodPatch, "/v1/sessions/%s/context", map[string]any{"note": nil}},
	{"id", http.MethodDelete, "/v1/sessions/%s", nil},
	{"id", http.MethodGet, "/v1/sessions/%s/methods/greet", nil},
	{"id", http.MethodPost, "/v1/functions/clerk__greet", map[string]any{"arguments": map[string]any{"who": "x"},
		"session_id": "%s"}},
	{"id", http.MethodGet, "/v1/calls?session_id=%s", nil},
	{"id", http.MethodDelete, "/v1/files/%s", nil},
	{"id", http.MethodPost, "/v1/recommendations/%s/apply", map[string]any{}},
	{"id", http.MethodPost, "/v1/recommendations/%s/dismiss", map[string]any{}},
	{"audit", http.MethodPost, "/v1/maintenance/audit/%s/undo", map[string]any{}},
	{"audit", http.MethodGet, "/v1/maintenance/audit?after=%s", nil},
	{"example", http.MethodPost, "/v1/tools/clerk/methods/greet/examples/%s/accept", nil},
	{"example", http.MethodPost, "/v1/tools/clerk/methods/greet/examples/%s/reject", nil},
	{"call_id", http.MethodPost, "/v1/calls/%s/cancel", nil},
	{"call_id", http.MethodPost, "/v1/calls/%s/replay", map[string]any{}},
	{"call_id", http.MethodPost, "/v1/calls/%s/verdict", map[string]any{"verdict": "wrong"}},
	{"call_id", http.MethodDelete, "/v1/calls/%s/verdict", nil},
	{"call_id", http.MethodGet, "/v1/calls?parent_call_id=%s", nil},
	{"call_id", http.MethodGet, "/v1/calls?after=%s", nil},
}

// Whoever names what another namespace has is answered as one who names what nobody has, whatever the operation, and
// changes nothing.
func TestOperationsElsewhere(t *testing.T) {
	t.Parallel()
	_, a, b, _, _ := twoTenants(t)
	for _, e := range objects(b.Get("/v1/tools/clerk/methods/greet/examples")["examples"]) {
		b.ids["example"] = append(b.ids["example"], e["id"].(string))
	}
	before := b.holdings()
	tried := 0
	for _, o := range namings {
		if len(b.ids[o.kind]) == 0 {
			t.Fatalf("b has nothing of the kind %s", o.kind)
		}
		for _, id := range b.ids[o.kind] {
			send := func(id string) rig.Response {
				path := strings.ReplaceAll(o.path, "%s", id)
				if o.body == nil {
					return a.Send(o.method, path, nil, nil)
				}
				return a.Send(o.method, path, bytes.ReplaceAll(rig.Encode(t, o.body), []byte("%s"), []byte(id)),
					map[string]string{"Content-Type": kindOf(o.method)})
			}
			none := id[:len(id)-4] + "zzzz"
			got, want := send(id), send(none)
			if got.Status != want.Status || !bytes.Equal(withoutIDs(got.Body, id), withoutIDs(want.Body, none)) ||
				bytes.Contains(got.Body, []byte(b.canary)) {
				t.Errorf("%s %s with what b has (%s): %d %s\nwith what nobody has: %d %s", o.method, o.path, id,
					got.Status, got.Body, want.Status, want.Body)
			}
			if strings.Contains(o.path, "/%s") && got.Status != http.StatusNotFound {
				t.Errorf("%s %s of b (%s): %d %s", o.method, o.path, id, got.Status, got.Body)
			}
			tried++
		}
	}
	if after := b.holdings(); before != after {
		t.Errorf("b had\n%s\nand has\n%s", before, after)
	}
	if tried < 60 {
		t.Errorf("only %d requests", tried)
	}
	// A file of b is no argument in a.
	a.Do(http.StatusOK, http.MethodPut, rig.MethodPath("reader", "read"), map[string]any{"code": reader})
	for _, x := range []*tenant{a, b} {
		got := a.Invoke(a.ids["id"][0], map[string]any{"role": "reader", "method": "read",
			"args": []any{map[string]any{"$file": x.ids["file"][0]}}})
		switch {
		case x == a && got.Outcome.Value != "bytes of "+a.canary:
			t.Errorf("a's own file: %+v", got.Outcome)
		case x == b && (got.Outcome.ErrorType != "file_not_found" ||
			strings.Contains(fmt.Sprint(got.Outcome), b.canary)):
			t.Errorf("a file of b as an argument: %+v", got.Outcome)
		}
	}
}

var reader = rig.Program(`	f, err := call.Open(call.Args[0])
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(f)
	return string(all), err`, "io")

func objects(list any) (all []map[string]any) {
	for _, e := range list.([]any) {
		all = append(all, e.(map[string]any))
	}
	return all
}

func kindOf(method string) string {
	if method == http.MethodPatch {
		return "application/merge-patch+json"
	}
	return "application/json"
}

// aging is what a list of tools shows of the time that has passed: a score of 1 is 0.9999 after two minutes.
var aging = regexp.MustCompile(`"score":[0-9.e-]+`)

// holdings is what the tenant has, as its lists show it.
func (x *tenant) holdings() string {
	var all strings.Builder
	for _, list := range []string{"/v1/sessions", "/v1/calls", "/v1/files", "/v1/tools", "/v1/recommendations",
		"/v1/maintenance/audit", "/v1/signatures", "/v1/tools/clerk/methods/greet/generations"} {
		for _, e := range x.List(list) {
			text := string(rig.Encode(x.T, e))
			if list == "/v1/tools" {
				text = aging.ReplaceAllString(text, "")
			}
			fmt.Fprintln(&all, list, text)
		}
	}
	fmt.Fprintln(&all, string(rig.Encode(x.T, x.Get("/v1/tools/clerk/methods/greet/examples"))))
	for _, id := range x.ids["session"] {
		fmt.Fprintln(&all, string(rig.Encode(x.T, x.Get("/v1/sessions/"+id+"/context"))))
	}
	return all.String()
}

// A stream that goes on behind a call of another namespace goes on as behind one that nobody knows: with its own calls
// alone.
func TestStreamsResumeInTheirNamespace(t *testing.T) {
	t.Parallel()
	_, a, b, _, _ := twoTenants(t)
	last := a.Call(a.ids["id"][0], "greet", "the very last")
	known := b.ids["call_id"][0]
	none := known[:len(known)-4] + "zzzz"
	behind, unknown := follow(t, a.Daemon, known)(last.CallID), follow(t, a.Daemon, none)(last.CallID)
	if !bytes.Equal(behind, unknown) || bytes.Contains(behind, []byte(b.canary)) ||
		bytes.Contains(behind, []byte(known)) {
		t.Errorf("behind a call of b the stream has\n%s\nand behind none\n%s", behind, unknown)
	}
	if n := bytes.Count(behind, []byte("event: call.finished")); n != len(a.List("/v1/calls")) {
		t.Errorf("%d calls in the stream of %d", n, len(a.List("/v1/calls")))
	}
	own := follow(t, a.Daemon, a.ids["call_id"][0])(last.CallID)
	if bytes.Count(own, []byte("event: call.finished")) >= bytes.Count(behind, []byte("event: call.finished")) {
		t.Errorf("behind a call of its own it begins at the start: %s", own)
	}
}
