package daemon

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A look is a reading of the interface by one token.
type look map[string]string // by path

// wholeDaemon are the operations that show the whole daemon, to admins or to everybody, and not what is in a namespace.
var wholeDaemon = map[string]bool{"metrics": true, "getSystem": true, "exportStore": true, "getEvents": true}

// more are lists in forms of their own, beside what the matrix asks for.
var more = []string{"/v1/tools?format=openai", "/v1/tools?format=mcp", "/v1/tools?sort=used", "/v1/tools?sort=cost",
	"/v1/tools?q=m", "/v1/calls?limit=1000", "/v1/calls?status=error", "/v1/sessions?limit=1000",
	"/v1/usage?by=owner", "/v1/usage?by=role", "/v1/usage?by=day", "/v1/maintenance/audit?format=jsonl",
	"/v1/maintenance/audit?principal=ann", "/v1/inbox?limit=1000", "/v1/recommendations?state=all"}

// moving is what differs between any two readings; a score ages.
var moving = regexp.MustCompile(`"(request_id|since|until)":"[^"]*"|"score":[0-9.e-]+`)

// look reads everything that can be read, asks what leaves nothing behind, and is refused what nobody has: a refusal
// has texts and headers, too.
func (w *world) look(t *testing.T, all []matrixRequest, s *side, token string) look {
	t.Helper()
	seen, nobody, refused := look{}, s.twin(), 0
	read := func(method, path, body, accept, media string) {
		got := w.send(t, method, path, body, token, map[string]string{"Accept": accept, "Content-Type": media})
		seen[method+" "+path] = moving.ReplaceAllString(got.comparable(), "")
	}
	for _, o := range all {
		if o.method == http.MethodGet && !wholeDaemon[o.id] || o.id == "simulatePolicy" || o.id == "mcp" {
			read(o.method, s.fill(o.path+o.query), s.fill(o.body), o.accept, o.media)
		}
		if o.elsewhere == http.StatusNotFound {
			read(o.method, nobody.fill(o.path+o.query), nobody.fill(o.body), o.accept, o.media)
			refused++
		}
	}
	for _, path := range more {
		read(http.MethodGet, path, "", "", "")
	}
	if refused < 40 {
		t.Errorf("only %d refusals", refused)
	}
	return seen
}

// burst does a lot that others must not notice: new sessions, calls that end well, fail and ask the model, predictions,
// files, tools, programs, examples, judgements, connections, a policy. It makes and uses tools of those names, too.
func (s *side) burst(round string, roles ...string) {
	s.t.Helper()
	token := s.token
	for _, role := range roles {
		s.do("PUT", "/v1/tools/"+role, map[string]any{"purpose": s.shared})
		s.do("PUT", "/v1/tools/"+role+"/methods/greet", map[string]any{"code": rig.ProgGiven})
		s.do("PUT", "/v1/tools/"+role+"/methods/m",
			map[string]any{"code": rig.Program("\treturn map[string]any{\"status\": \"partial\"}, nil")})
	}
	for _, role := range append([]string{"{clerk}", "{low}", "{shelf}"}, roles...) {
		id := s.do("POST", "/v1/sessions", map[string]any{"role": role,
			"context": map[string]any{"note": s.canary}})["id"].(string)
		for _, method := range []string{"greet", "m", "m", "m", "unheard_" + round, "name="} {
			got := s.w.send(s.t, "POST", "/v1/sessions/"+id+"/calls",
				`{"method": "`+method+`", "args": ["`+s.canary+round+`"]}`, token, nil)
			if got.status != http.StatusOK {
				s.t.Fatalf("%s: %d %s", method, got.status, got.body)
			}
		}
	}
	s.do("POST", "/v1/predict",
		map[string]any{"signature": map[string]any{"inputs": []any{map[string]any{"name": "q"}},
			"outputs": []any{map[string]any{"name": "a"}}}, "inputs": map[string]any{"q": s.canary}})
	s.file()
	s.proposal()
	s.do("PUT", "/v1/tools/new-"+round, map[string]any{"purpose": s.shared})
	s.do("PUT", "/v1/tools/new-"+round+"/methods/m", map[string]any{"code": rig.ProgGiven})
	s.do("PUT", "/v1/signatures/new-"+round, map[string]any{"instructions": s.shared,
		"inputs": []any{map[string]any{"name": "q"}}, "outputs": []any{map[string]any{"name": "a"}}})
	s.do("PUT", "/v1/connections/new-"+round, map[string]any{"hosts": []string{"b.example.org"},
		"methods": []string{"GET"}, "roles": []string{"*"}, "auth": map[string]any{"type": "bearer",
			"secret": "swordfish"}})
	s.do("PATCH", "/v1/policy", map[string]any{"delegation_depth": 3})
	s.do("PUT", "/v1/tools/{clerk}/methods/greet/examples",
		map[string]any{"examples": []any{map[string]any{"args": []any{s.canary + round},
			"expect": map[string]any{"value": s.canary + round}}}})
}

// Actions of others change no byte of what one is shown: no list, count, report, figure, order or page. Another
// namespace may do what it likes; of people in the same one that holds for what is their own. Nor does any of it come
// over an event stream, a new one or one that goes on behind a call of one's own.
func TestOthersMoveNothing(t *testing.T) {
	t.Parallel()
	w, ops := newWorld(t), operations(t)
	all, own := w.own.token, tokenOf("ann", "a", access.Scopes(access.Read|access.Call))
	live, behind := w.stream(t, own, ""), w.stream(t, own, w.own.ids["call"])
	whole := w.stream(t, all, "")
	before, mine := w.look(t, ops, w.own, all), w.look(t, ops, w.own, own)
	w.away.burst("b1", w.own.ids["clerk"], w.own.ids["low"], w.own.ids["shelf"])
	unmoved(t, "of another namespace, with all scopes", before, w.look(t, ops, w.own, all))
	unmoved(t, "of another namespace", mine, w.look(t, ops, w.own, own))
	if len(before) < 60 {
		t.Errorf("only %d paths were read", len(before))
	}

	w.other.burst("a2")
	theirs := w.look(t, ops, w.own, own)
	private := 0
	for path := range mine {
		if at := strings.TrimPrefix(path, "GET "); strings.HasPrefix(at, "/v1/sessions") ||
			strings.HasPrefix(at, "/v1/calls") || strings.HasPrefix(at, "/v1/files") ||
			strings.HasPrefix(at, "/v1/usage") {
			private++
			unmoved(t, "of another person", look{path: mine[path]}, look{path: theirs[path]})
		}
	}
	if private < 12 {
		t.Errorf("only %d paths of one's own", private)
	}
	last := w.own.do("POST", "/v1/sessions/{session}/calls", map[string]any{"method": "greet",
		"args": []any{w.own.canary}})["call_id"].(string)
	away := append(append(w.away.known(), w.away.canary, w.away.shared), w.away.private...)
	for name, c := range map[string]struct {
		read   func(until string) string
		hidden []string
	}{"a new stream": {live, append(away, w.other.canary)}, "one that goes on": {behind, append(away, w.other.canary)},
		"one of who may operate": {whole, away}} {
		seen := c.read(last)
		for _, s := range c.hidden {
			if strings.Contains(seen, s) {
				t.Errorf("%s shows %s:\n%.2000s", name, s, seen)
			}
		}
		if n := strings.Count(seen, "event: call.finished"); n == 0 || name == "a new stream" && n != 1 {
			t.Errorf("%s has %d calls that finished:\n%.2000s", name, n, seen)
		}
	}
}

// unmoved compares two looks.
func unmoved(t *testing.T, whose string, before, after look) {
	t.Helper()
	for path, was := range before {
		now := after[path]
		if was == now {
			continue
		}
		at := 0
		for at < min(len(was), len(now)) && was[at] == now[at] {
			at++
		}
		from := max(at-100, 0)
		t.Errorf("what is done by others %s shows in %s:\n...%.300s\nnow\n...%.300s", whose, path, was[from:],
			now[from:])
	}
}

// stream begins to read the events of all calls; the returned function returns what came up to the end of a call.
func (w *world) stream(t *testing.T, token, after string) func(until string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	resp, err := (&http.Client{}).Do(r) // without the time limit of the others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream: %s", resp.Status)
	}
	return func(until string) (seen string) {
		event := ""
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			line := lines.Text()
			seen += line + "\n"
			if name, is := strings.CutPrefix(line, "event: "); is {
				event = name
			}
			if event == "call.finished" && strings.HasPrefix(line, "data: ") && strings.Contains(line, until) {
				return seen
			}
		}
		return seen
	}
}
