package daemon

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access"
)

// conditions are headers that have a request answered in another way.
var conditions = []map[string]string{{"If-Match": `"1"`}, {"If-Match": "*"}, {"If-None-Match": "*"},
	{"If-None-Match": `"1"`}, {"Range": "bytes=0-3"}, {"Last-Event-ID": "{call}"},
	{"Prefer": "respond-async"}, {"Prefer": "wait=1"}, {"Idempotency-Key": "same"}, {"Accept": "text/plain"},
	{"Recurgent-Namespace": "a"}, {"X-Http-Method-Override": "DELETE"}, {"Recurgent-Principal": "e30"}}

// cursors are lists that go on behind an id.
var cursors = []string{"/v1/sessions", "/v1/calls", "/v1/files", "/v1/maintenance/audit",
	"/v1/calls?session_id={session}", "/v1/calls?parent_call_id={call}", "/v1/inbox", "/v1/recommendations",
	"/v1/tools", "/v1/signatures", "/v1/connections", "/v1/usage?by=role"}

// Whatever headers a request has, and whatever a list is to go on behind: who names what is another person's or another
// namespace's gets the answer of one who names what nobody has.
func TestTwins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all, caller := tokenOf("ann", "a", access.All), tokenOf("ann", "a", access.Scopes(access.Read|access.Call))
	tried := 0
	same := func(at *side, method, path, body, token string, header map[string]string) {
		t.Helper()
		ask := func(s *side) string {
			h := maps.Clone(header)
			for name := range h {
				h[name] = s.fill(h[name])
			}
			return at.unfill(w.send(t, method, s.fill(path), s.fill(body), token, h))
		}
		tried++
		if one, other := ask(at), ask(at.twin()); one != other {
			t.Errorf("%s %s %v: %s\nand of what nobody has: %s", method, path, header, one, other)
		}
	}
	for _, o := range operations(t) {
		if !pathNames.MatchString(o.path+o.query+o.body) || o.anyone || strings.Contains(o.path, "/namespaces/") {
			continue
		}
		for _, c := range conditions {
			h := map[string]string{"Content-Type": o.media, "Accept": o.accept}
			maps.Copy(h, c)
			if o.elsewhere >= 300 || o.method == http.MethodGet { // else it makes one of that name
				same(w.away, o.method, o.path+o.query, o.body, all, h)
			}
			if o.private() {
				same(w.other, o.method, o.path+o.query, o.body, caller, h)
			}
		}
		if o.method == http.MethodGet {
			same(w.away, http.MethodHead, o.path+o.query, "", all, nil)
		}
	}
	for _, list := range cursors {
		for _, id := range []string{"{session}", "{call}", "{entry}", "{recommendation}", "{clerk}", "{file_id}"} {
			path := list + "?after=" + id
			if strings.Contains(list, "?") {
				path = list + "&after=" + id
			}
			same(w.away, http.MethodGet, path, "", all, nil)
			if list == "/v1/calls" && id == "{call}" {
				continue // a page of one's own calls may end at another's, behind which the next one begins
			}
			if private := id == "{session}" || id == "{call}" || id == "{file_id}"; private {
				same(w.other, http.MethodGet, path, "", caller, nil)
			}
		}
	}
	if tried < 900 {
		t.Errorf("only %d requests", tried)
	}
}
