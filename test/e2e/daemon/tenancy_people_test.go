package daemon

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	document "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Tokens: ann is somebody else in each of the two namespaces.
const (
	tokenA, tokenB, tokenRoot = "token-of-ann-in-a-0001", "token-of-ann-in-b-0002", "token-of-root-0003"
	tokensOfTwo               = "ann " + tokenA + " namespace=a scopes=read,call,operate\nann " + tokenB +
		" namespace=b scopes=read,call,operate\nroot " + tokenRoot + "\n"
)

// a person's view of the daemon; "" is no token, and no namespace but that of the token.
func person(d *rig.Daemon, token, namespace string) *rig.Daemon {
	if token != "" {
		d = d.As(token)
	}
	return d.In(namespace)
}

// guarded starts a daemon with the tokens.
func guarded(t *testing.T, m *rig.Model, args ...string) *rig.Daemon {
	t.Helper()
	return guardedIn(t, m, nil, args...)
}

// guardedIn is guarded with more in the daemon's environment.
func guardedIn(t *testing.T, m *rig.Model, env []string, args ...string) *rig.Daemon {
	t.Helper()
	return rig.StartIn(t, m, env, append(args, "--auth-tokens-file", rig.WriteFile(t, "tokens", tokensOfTwo))...)
}

// A tenant is what one namespace holds after visit: the same names as in the other one, with a canary of its own in
// everything.
type tenant struct {
	*rig.Daemon
	name, canary string
	ids          map[string][]string // by the name of a path parameter: what is known only here
}

// words are the path parameters that are the same everywhere.
var words = map[string][]string{"role": {"clerk"}, "method": {"greet"}, "name": {"weather", "qa", "none"},
	"code": {"not_found"}}

// visit does in the namespace everything that leaves something behind.
func (x *tenant) visit(root *rig.Daemon, source string) {
	x.T.Helper()
	x.ids = map[string][]string{}
	note := func(parameter string, values ...string) { x.ids[parameter] = append(x.ids[parameter], values...) }
	x.Policy(map[string]any{"redact_keys": []string{"password", "passwd_" + x.canary}})
	x.Do(http.StatusCreated, http.MethodPut, "/v1/tools/clerk", map[string]any{"purpose": "greets for " + x.canary})
	admin := person(root, tokenRoot, x.name)
	admin.Do(http.StatusCreated, http.MethodPut, "/v1/connections/weather",
		map[string]any{"description": "of " + x.canary, "hosts": []string{source}, "methods": []string{"GET"},
			"roles": []string{"fetcher"}, "auth": map[string]any{"type": "bearer", "secret": "secret-of-" + x.name}})
	x.Do(http.StatusCreated, http.MethodPut, "/v1/signatures/qa",
		map[string]any{"instructions": "answer for " + x.canary, "inputs": []any{map[string]any{"name": "q"}},
			"outputs": []any{map[string]any{"name": "a"}}})

	id := x.Session("clerk", map[string]any{"context": map[string]any{"note": x.canary}})
	note("id", id)
	note("session", id)
	got := x.Call(id, "greet", x.canary)
	x.WantValue(got, "hello from "+x.name+" to "+x.canary, "generated")
	note("call_id", got.CallID)
	x.WantValue(x.Call(id, "greet", x.canary), "hello from "+x.name+" to "+x.canary, "persisted")
	keyed := x.Send(http.MethodPost, "/v1/sessions/"+id+"/calls",
		rig.Encode(x.T, map[string]any{"method": "greet", "args": []any{"again " + x.canary}}),
		map[string]string{"Idempotency-Key": "same"})
	if keyed.Status != http.StatusOK || keyed.Header.Get("Idempotent-Replayed") == "true" {
		x.T.Errorf("%s: the key of another namespace answers: %d %s", x.name, keyed.Status, keyed.Body)
	}
	fetched := x.Invoke(id, map[string]any{"role": "fetcher", "method": "page",
		"args": []any{"http://" + source + "/page"}})
	x.WantValue(fetched, "Bearer [masked]", "")
	note("call_id", fetched.CallID)
	x.Do(http.StatusOK, http.MethodPut, rig.MethodPath("clerk", "greet")+"/examples",
		map[string]any{"examples": []any{map[string]any{"args": []any{"ex " + x.canary},
			"expect": map[string]any{"value": "hello from " + x.name + " to ex " + x.canary}}}})
	x.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+got.CallID+"/verdict",
		map[string]any{"verdict": "right", "note": x.canary})
	file := x.Send(http.MethodPost, "/v1/files?name="+x.canary+".txt", []byte("bytes of "+x.canary),
		map[string]string{"Content-Type": "text/plain"})
	if file.Status != http.StatusCreated {
		x.T.Fatalf("upload: %d %s", file.Status, file.Body)
	}
	note("id", file.Object(x.T)["id"].(string))
	note("file", file.Object(x.T)["id"].(string))
	asked := x.Do(http.StatusOK, http.MethodPost, "/v1/signatures/qa/predict",
		map[string]any{"inputs": map[string]any{"q": "asked of " + x.canary}}).Object(x.T)
	if fmt.Sprint(asked["outputs"]) != "map[a:answered]" {
		x.T.Errorf("%s: predicted %v", x.name, asked)
	}
	movies := x.Session("finder "+x.name, map[string]any{"contract": rig.MovieContract})
	note("id", movies)
	for range 4 { // a weak answer, and the question repeated: a recommendation
		note("call_id", x.Call(movies, "find", "for "+x.canary).CallID)
	}
	advice := x.Recommendations("")
	if len(advice) != 1 {
		x.T.Fatalf("%s: the recommendations are %v", x.name, advice)
	}
	note("id", advice[0]["id"].(string))
	note("audit", x.List("/v1/maintenance/audit")[0]["id"].(string))
	for _, e := range x.List("/v1/maintenance/audit") {
		note("id", e["id"].(string))
	}
}

// gets are all paths that can be read, of the document.
func gets(t *testing.T) []string {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for path, item := range doc.Paths.Map() {
		if item.Get != nil && !endless(path) {
			all = append(all, path)
		}
	}
	return all
}

// filled puts values into the parameters of a path: those of the two namespaces, and one that nobody has.
func filled(path string, one, other *tenant) (paths []string) {
	paths = []string{path}
	for _, name := range []string{"id", "call_id", "role", "method", "name", "code"} {
		var next []string
		for _, p := range paths {
			values := append(append(append([]string{}, words[name]...), one.ids[name]...), other.ids[name]...)
			if !bytes.Contains([]byte(p), []byte("{"+name+"}")) {
				values = []string{""}
			}
			for _, v := range values {
				next = append(next, string(bytes.ReplaceAll([]byte(p), []byte("{"+name+"}"), []byte(v))))
			}
		}
		paths = next
	}
	return paths
}

// search reads everything as one tenant and finds nothing of the other.
func search(t *testing.T, one, other *tenant) {
	t.Helper()
	read, found := 0, 0
	for _, path := range gets(t) {
		for _, p := range filled(path, one, other) {
			for _, query := range []string{"", "?format=openai", "?format=mcp"} {
				if query != "" && p != "/v1/tools" {
					continue
				}
				r := one.Send(http.MethodGet, p+query, nil, nil)
				read++
				if bytes.Contains(r.Body, []byte(other.canary)) || bytes.Contains([]byte(fmt.Sprint(r.Header)),
					[]byte(other.canary)) {
					t.Errorf("%s reads of %s: GET %s: %d %.300s", one.name, other.name, p, r.Status, r.Body)
				}
				if bytes.Contains(r.Body, []byte(one.canary)) {
					found++
				}
			}
		}
	}
	if read < 60 || found < 15 {
		t.Errorf("%s: %d paths were read, %d of which show what is its own", one.name, read, found)
	}
	for parameter, paths := range map[string][]string{"id": {"/v1/sessions/%s", "/v1/sessions/%s/context",
		"/v1/sessions/%s/history", "/v1/files/%s", "/v1/files/%s/content"},
		"call_id": {"/v1/calls/%s", "/v1/calls/%s/verdict", "/v1/calls/%s/events"}} {
		for _, id := range other.ids[parameter] {
			none := id[:len(id)-4] + "zzzz"
			for _, path := range paths {
				got, want := one.Send(http.MethodGet, fmt.Sprintf(path, id), nil, nil),
					one.Send(http.MethodGet, fmt.Sprintf(path, none), nil, nil)
				if got.Status != http.StatusNotFound || !bytes.Equal(withoutIDs(got.Body, id),
					withoutIDs(want.Body, none)) {
					t.Errorf("%s can find out that %s exists elsewhere: %s: %d %s, and of none %d %s", one.name, id,
						path, got.Status, got.Body, want.Status, want.Body)
				}
			}
		}
	}
}

// plain is a problem without what differs between any two.
func withoutIDs(body []byte, id string) []byte {
	body = bytes.ReplaceAll(body, []byte(id), []byte("ID"))
	before, _, _ := bytes.Cut(body, []byte(`"request_id"`))
	return before
}
