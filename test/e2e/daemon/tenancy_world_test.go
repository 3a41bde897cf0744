package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// anybody is an Authenticator of tokens that say whose they are, so that one person can have every set of scopes.
type anybody struct{}

func tokenOf(name string, in agent.Namespace, scopes access.Scopes) string {
	return fmt.Sprintf("%s.%s.%d", name, in, scopes)
}

func (anybody) Authenticate(_ context.Context, bearer string) (access.Principal, error) {
	parts := strings.Split(bearer, ".")
	var scopes access.Scopes
	if len(parts) != 3 {
		return access.Principal{}, access.ErrUnknown
	}
	_, err := fmt.Sscan(parts[2], &scopes)
	return access.Principal{Name: parts[0], Namespace: agent.Namespace(parts[1]), Scopes: scopes}, err
}

// A world is a daemon in this process with two namespaces and three people.
type world struct {
	dir, url         string
	http             *http.Client
	own, other, away *side // of ann in a, of ben in a, of ann in b
}

// A side is what one person has in one namespace.
type side struct {
	w             *world
	t             *testing.T
	token, caller string // with all scopes, and with call alone
	canary        string // in what is the person's own
	shared        string // in what everybody in the namespace shares
	ids           map[string]string
	private       []string // ids of sessions and calls of the person, which no path of the matrix names
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func newWorld(t *testing.T) *world {
	t.Helper()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text(`{"a": "yes"}`))
	o := app.DefaultOptions()
	o.Listen, o.DataDir, o.Provider, o.OpenAIBaseURL, o.OpenAIKey, o.Model = "127.0.0.1:0", t.TempDir(), "openai",
		m.URL, rig.SecretKey, "scripted"
	o.Auth, o.Runners = anybody{}, 2
	compiler, err := apptest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	o.CompilerDir, o.GoCache = compiler[0], compiler[1]
	w := &world{dir: o.DataDir, http: &http.Client{Timeout: rig.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	stop := w.start(t, o)
	w.own, w.other, w.away = w.newSide(t, "ann", "a"), w.newSide(t, "ben", "a"), w.newSide(t, "ann", "b")
	w.own.share()
	w.away.share()
	for name, id := range w.own.ids { // what a namespace shares is the same for all in it
		if w.other.ids[name] == "" {
			w.other.ids[name] = id
		}
	}
	for _, s := range []*side{w.own, w.other, w.away} {
		s.seed()
	}
	stop() // what the journal holds goes into its files then; nothing but requests writes after it
	t.Cleanup(w.start(t, o))
	return w
}

func (w *world) start(t *testing.T, o app.Options) (stop func()) {
	t.Helper()
	a, err := app.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	w.url = a.URL()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
}

func (w *world) newSide(t *testing.T, name string, in agent.Namespace) *side {
	s := &side{w: w, t: t, token: tokenOf(name, in, access.All), caller: tokenOf(name, in, access.Scopes(access.Call)),
		canary: "canary-of-" + name + "-in-" + string(in), shared: "shared-in-" + string(in), ids: map[string]string{}}
	return s
}

// do sends v with the side's token, and wants a success.
func (s *side) do(method, path string, v any) map[string]any {
	s.t.Helper()
	return s.as(s.token, method, path, v)
}

func (s *side) as(token, method, path string, v any) map[string]any {
	s.t.Helper()
	body := ""
	if v != nil {
		body = string(rig.MustJSON(v))
	}
	got := s.w.send(s.t, method, s.fill(path), s.fill(body), token, nil)
	if got.status >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, s.fill(path), got.status, got.body)
	}
	o := map[string]any{}
	_ = json.Unmarshal(got.body, &o) // a 204 has none
	return o
}

// share makes what all people of the namespace share.
func (s *side) share() {
	in := s.token[len(s.token)-len("a.15")]
	for _, name := range []string{"clerk", "shelf", "old", "low", "wish"} {
		s.ids[name] = name + "-" + string(in)
	}
	for _, name := range []string{"qa", "weather"} {
		s.ids[name] = name + "-" + string(in)
	}
	s.do("PUT", "/v1/tools/{clerk}", map[string]any{"purpose": s.shared})
	s.do("PUT", "/v1/tools/{shelf}", map[string]any{"purpose": s.shared})
	s.do("PUT", "/v1/tools/{clerk}/methods/greet", map[string]any{"code": rig.ProgGiven})
	s.do("PUT", "/v1/tools/{clerk}/methods/wants",
		map[string]any{"code": rig.Program(
			"\tcall.Delegate(call.Arg(0, \"role\").(string), recurgent.Contract{Deliverable: map[string]any{\"required\": []string{\"" + s.shared + "\"}}})\n\treturn 1, nil")})
	s.do("PUT", "/v1/tools/{shelf}/methods/m", map[string]any{"code": rig.ProgGiven, "reason": s.shared})
	s.do("PUT", "/v1/tools/{shelf}/methods/m", map[string]any{"code": rig.ProgEcho})
	s.do("PUT", "/v1/tools/{old}", map[string]any{"purpose": s.shared})
	s.do("DELETE", "/v1/tools/{old}", nil)
	s.do("PUT", "/v1/tools/{low}/methods/m",
		map[string]any{"code": rig.Program("\treturn map[string]any{\"status\": \"partial\"}, nil")})
	for i := range 4 {
		id := s.do("POST", "/v1/sessions", map[string]any{"role": "{low}"})["id"].(string)
		s.do("POST", "/v1/sessions/"+id+"/calls", map[string]any{"method": "m", "args": []any{i}})
	}
	s.do("PUT", "/v1/signatures/{qa}", map[string]any{"instructions": s.shared,
		"inputs": []any{map[string]any{"name": "q"}}, "outputs": []any{map[string]any{"name": "a"}}})
	s.connection()
	for _, r := range s.do("GET", "/v1/recommendations", nil)["data"].([]any) {
		s.ids["recommendation"] = r.(map[string]any)["id"].(string)
	}
	if s.ids["recommendation"] == "" {
		s.t.Fatal("nothing is recommended")
	}
	s.ids["spare"] = "spare"
	s.spare()
}

// seed makes what is the person's own.
func (s *side) seed() {
	s.session()
	s.do("POST", "/v1/sessions/{session}/calls", map[string]any{"method": "greet", "args": []any{s.canary}})
	// examples are shared
	got := s.do("POST", "/v1/sessions/{session}/calls", map[string]any{"method": "greet", "args": []any{s.token}})
	s.ids["call"] = got["call_id"].(string)
	for _, role := range []string{"{shelf}", "{low}"} { // what reports and programs keep of calls
		id := s.do("POST", "/v1/sessions", map[string]any{"role": role})["id"].(string)
		for i := range 4 {
			got := s.do("POST", "/v1/sessions/"+id+"/calls", map[string]any{"method": "m", "args": []any{i, s.canary}})
			s.private = append(s.private, got["call_id"].(string))
		}
		s.private = append(s.private, id)
	}
	s.file()
	s.proposal()
	s.entry()
}

func (s *side) session() {
	s.ids["session"] = s.do("POST", "/v1/sessions", map[string]any{"role": "{clerk}",
		"context": map[string]any{"note": s.canary}, "metadata": map[string]any{"note": s.canary}})["id"].(string)
}

func (s *side) file() {
	got := s.w.send(s.t, "POST", "/v1/files?name="+s.canary+".txt", "bytes of "+s.canary, s.token,
		map[string]string{"Content-Type": "text/plain"})
	var f struct{ ID string }
	if err := json.Unmarshal(got.body, &f); err != nil || got.status != http.StatusCreated {
		s.t.Fatalf("upload: %d %s", got.status, got.body)
	}
	s.ids["file"] = f.ID
}

// proposal judges the call, anew where it was.
func (s *side) proposal() {
	s.w.send(s.t, "DELETE", s.fill("/v1/calls/{call}/verdict"), "", s.token, nil) // 404 where there is none
	got := s.as(s.caller, "POST", "/v1/calls/{call}/verdict", map[string]any{"verdict": "right"})
	if s.ids["example"], _ = got["example_id"].(string); got["example_state"] != "proposed" {
		s.t.Fatalf("a verdict of one who may call only: %v", got)
	}
}

// wishes has a program propose a contract, anew where that was decided.
func (s *side) wishes() {
	s.w.send(s.t, "DELETE", s.fill("/v1/tools/{wish}"), "", s.token, nil) // 404 where there is none
	s.do("PUT", "/v1/tools/{wish}", map[string]any{"purpose": s.shared})
	s.do("POST", "/v1/sessions/{session}/calls", map[string]any{"method": "wants", "args": []any{"{wish}"}})
	waits := s.do("GET", "/v1/inbox?kind=proposal&role={wish}", nil)["data"].([]any)
	if len(waits) != 1 {
		s.t.Fatalf("there waits %v", waits)
	}
	s.ids["contract"] = waits[0].(map[string]any)["evidence"].(map[string]any)["contract"].(map[string]any)["id"].(string)
}

func (s *side) connection() {
	s.do("PUT", "/v1/connections/{weather}", map[string]any{"description": s.shared, "hosts": []string{"a.example.org"},
		"methods": []string{"GET"}, "roles": []string{"*"}, "auth": map[string]any{"type": "bearer",
			"secret": "swordfish"}})
}

func (s *side) signature() {
	s.do("PUT", "/v1/signatures/{qa}", map[string]any{"instructions": s.shared,
		"inputs": []any{map[string]any{"name": "q"}}, "outputs": []any{map[string]any{"name": "a"}}})
}

func (s *side) spare() {
	s.as(tokenOf("root", "default", access.All), "PUT", "/v1/namespaces/spare", nil)
}

// entry makes an entry of the audit trail that can be undone.
func (s *side) entry() {
	s.do("PUT", "/v1/tools/{clerk}", map[string]any{"purpose": s.shared + " " + s.ids["entry"]})
	s.ids["entry"], _ = s.newest()
}

// newest is the newest entry of the audit trail, and the request that undoes it.
func (s *side) newest() (id, undo string) {
	list := s.do("GET", "/v1/maintenance/audit?limit=1", nil)["data"].([]any)
	o, _ := list[0].(map[string]any)
	undo, _ = o["undo"].(string)
	return o["id"].(string), undo
}

// takeBack undoes what was done last in the namespace of the view, where an undo can.
func (w *world) takeBack(t *testing.T, name string, v *view) {
	t.Helper()
	in := w.own
	if v.header != "" {
		in = w.away
	}
	id, undo := in.newest()
	if in.ids["entry"] == id || in.ids["newest"] == id {
		return // it left none
	}
	method, rest, _ := strings.Cut(undo, " ")
	path, body, _ := strings.Cut(rest, " ")
	if method == "DELETE" || strings.Contains(path, "/audit/") || strings.HasPrefix(body, "{") {
		if got := w.send(t, method, path, body, in.token, nil); got.status >= 300 {
			t.Errorf("%s: %s: %d %s", name, undo, got.status, got.body)
		}
	}
	in.ids["newest"], _ = in.newest()
}

// fill puts the side's names and ids into a path or a body.
func (s *side) fill(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	x := s.ids
	return strings.NewReplacer("/sessions/{id}", "/sessions/"+x["session"], "/files/{id}", "/files/"+x["file"],
		"/audit/{id}", "/audit/"+x["entry"],
		"{role}/methods/{method}/examples/{id}", x["clerk"]+"/methods/greet/examples/"+x["example"],
		"{role}/proposals/{id}", x["wish"]+"/proposals/"+x["contract"], "/recommendations/{id}",
		"/recommendations/"+x["recommendation"],
		"/patterns/{role}", "/patterns/"+x["low"], "/namespaces/{name}", "/namespaces/spare", "/signatures/{name}",
		"/signatures/"+x["qa"], "/connections/{name}", "/connections/"+x["weather"], "/functions/{name}",
		"/functions/"+x["clerk"]+"__greet",
		"{call_id}", x["call"], "{role}", x["shelf"], "/methods/{method}", "/methods/m", "{code}", "not_found",
		"{file_id}", x["file"], "{entry}", x["entry"], "{recommendation}", x["recommendation"], "{session}",
		x["session"], "{clerk}", x["clerk"], "{shelf}", x["shelf"], "{old}", x["old"], "{low}", x["low"], "{wish}",
		x["wish"], "{qa}", x["qa"], "{weather}", x["weather"], "{call}", x["call"]).Replace(text)
}

// known are the ids of what the side has. Names may come to be used elsewhere, too.
func (s *side) known() (all []string) {
	for _, id := range s.ids {
		if strings.Contains(id, "_") {
			all = append(all, id)
		}
	}
	return all
}

// twin is a side that has nothing, with ids and names like those of this one.
func (s *side) twin() *side {
	x := &side{w: s.w, t: s.t, ids: map[string]string{}}
	for name, id := range s.ids {
		switch {
		case name == "spare" || id == "":
			x.ids[name] = id
		case strings.Contains(id, "_"):
			x.ids[name] = none(id)
		default:
			x.ids[name] = id[:len(id)-1] + "z"
		}
	}
	return x
}

// comparable is the reply as a text, headers first, without what differs between any two.
func (a answer) comparable() string {
	h := a.header.Clone()
	for _, name := range []string{"Date", "X-Request-Id", "Content-Length"} {
		h.Del(name)
	}
	return fmt.Sprintln(a.status, h) + string(a.body)
}

// unfill is the opposite of fill, of the side and of its twin, for replies that are compared.
func (s *side) unfill(got answer) string {
	text := timeless.ReplaceAllString(got.comparable(), "")
	for name, twin := range s.twin().ids {
		if twin != "" {
			text = strings.NewReplacer(s.ids[name], "{"+name+"}", twin, "{"+name+"}").Replace(text)
		}
	}
	return text
}

// endless reports whether what is read from the path does not end.
func endless(path string) bool { return path == "/v1/events" || path == "/v1/inbox/events" }

func (w *world) send(t *testing.T, method, path, body, token string, header map[string]string) answer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range header {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := w.http.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	got := answer{resp.StatusCode, resp.Header, nil}
	switch {
	case resp.StatusCode == http.StatusOK && path == "/v1/events": // which does not end
	// its first event says what there is
	case resp.StatusCode == http.StatusOK && method == http.MethodGet && endless(path):
		for lines := bufio.NewScanner(resp.Body); !bytes.Contains(got.body, []byte("data: ")) && lines.Scan(); {
			got.body = append(append(got.body, lines.Bytes()...), '\n')
		}
	default:
		if got.body, err = io.ReadAll(resp.Body); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return got
}

// drifting is what changes in a list of tools while nobody does anything: a score ages, and what a tool cost is read
// again after a moment.
var drifting = regexp.MustCompile(`"score":[0-9.e-]+|"usage":\{[^}]*\}`)

// state is what the side's namespace holds, as far as lists show it.
func (s *side) state() map[string][]byte {
	s.t.Helper()
	all := map[string][]byte{}
	for _, path := range []string{"/v1/sessions", "/v1/calls?limit=5", "/v1/files", "/v1/tools", "/v1/connections",
		"/v1/signatures", "/v1/policy", "/v1/recommendations", "/v1/maintenance/audit?limit=1"} {
		all[path] = drifting.ReplaceAll(s.w.send(s.t, http.MethodGet, path, "", s.token, nil).body, nil)
	}
	return all
}

func same(t *testing.T, what string, before, after map[string][]byte) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !bytes.Equal(before[name], after[name]) {
			at := 0
			for at < min(len(before[name]), len(after[name])) && before[name][at] == after[name][at] {
				at++
			}
			from := max(0, at-150)
			t.Errorf("%s: %s was changed:\n%.300s\nwas\n%.300s", what, name, after[name][from:],
				before[name][min(from, len(before[name])):])
		}
		delete(before, name)
	}
	for name := range before {
		t.Errorf("%s: %s is gone", what, name)
	}
}
