//go:build postgres

package replicas

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// on starts a daemon on the database, with the key file that opens its connections' secrets.
func on(t *testing.T, m *rig.Model, database, key string, args ...string) *rig.Daemon {
	t.Helper()
	return rig.StartIn(t, m, []string{"RECURGENT_STORE=" + database},
		append([]string{"--secrets-key-file", key, "--runners", "2"}, args...)...)
}

// upload makes a file of the text and returns its id.
func upload(d *rig.Daemon, text string) string {
	d.T.Helper()
	r := d.Send(http.MethodPost, "/v1/files?name=a.txt", []byte(text), map[string]string{"Content-Type": "text/plain"})
	id, _ := r.Object(d.T)["id"].(string)
	if r.Status != http.StatusCreated || id == "" {
		d.T.Fatalf("upload: %d %s", r.Status, r.Body)
	}
	return id
}

// answers is what the daemon says of everything that it holds in these namespaces: each path's body, with ids that the
// lists show.
func answers(d *rig.Daemon, namespaces ...string) map[string]string {
	d.T.Helper()
	out := map[string]string{}
	for _, name := range namespaces {
		x := d.In(name)
		ask := func(path string) {
			x.T.Helper()
			out[name+path] = string(x.Do(http.StatusOK, http.MethodGet, path, nil).Body)
		}
		all := func(list, id, each string, more ...string) {
			x.T.Helper()
			out[name+list] = string(rig.MustJSON(x.List(list)))
			for _, item := range x.List(list) {
				path := fmt.Sprintf(each, url.PathEscape(fmt.Sprint(item[id])))
				for _, m := range append([]string{""}, more...) {
					ask(path + m)
				}
			}
		}
		all("/v1/sessions", "id", "/v1/sessions/%s", "/context", "/history?limit=500")
		all("/v1/calls", "call_id", "/v1/calls/%s", "/why")
		all("/v1/files", "id", "/v1/files/%s", "/content")
		all("/v1/connections", "name", "/v1/connections/%s")
		all("/v1/signatures", "name", "/v1/signatures/%s")
		for _, tool := range x.List("/v1/tools") {
			path := "/v1/tools/" + url.PathEscape(tool["role"].(string))
			ask(path)
			all(path+"/methods", "method_name", path+"/methods/%s", "/generations", "/fixtures", "/effects",
				"/examples")
		}
		for _, path := range []string{"/v1/tools?limit=100", "/v1/policy", "/v1/recommendations", "/v1/inbox",
			"/v1/usage?by=method", "/v1/patterns/clerk", "/v1/reports/history-usage",
			"/v1/maintenance/stale?days=1"} {
			ask(path)
		}
	}
	return out
}

// same compares what two daemons say.
func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if len(want) < 40 {
		t.Errorf("%s: %d answers only are compared", what, len(want))
	}
	for path, body := range want {
		if got[path] != body && !equal(body, got[path]) {
			i := 0
			for i < min(len(body), len(got[path])) && body[i] == got[path][i] {
				i++
			}
			t.Errorf("%s: GET %s is, from byte %d on, %.300s\nand was %.300s", what, path, i, got[path][i:], body[i:])
		}
	}
	for path := range got {
		if _, had := want[path]; !had {
			t.Errorf("%s: GET %s is new", what, path)
		}
	}
}

// aging is what a tool shows of the time that has passed since it was used.
var aging = regexp.MustCompile(`"score":[0-9.e-]+`)

// equal compares JSON with what stores may keep differently or what is of the moment.
func equal(a, b string) bool {
	a, b = aging.ReplaceAllString(a, `"score":0`), aging.ReplaceAllString(b, `"score":0`)
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return rig.Equal(x, y)
}

// actions lists the audit trail's, oldest first.
func actions(d *rig.Daemon) (out []string) {
	d.T.Helper()
	list := d.List("/v1/maintenance/audit")
	for i := range list {
		e := list[len(list)-1-i]
		out = append(out, fmt.Sprint(e["id"], " ", e["action"], " ", e["target"]))
	}
	return out
}

func keyFile(t *testing.T) string { return filepath.Join(t.TempDir(), "secrets.key") }
