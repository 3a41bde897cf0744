package daemon

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A hay is everything that is searched, by where it comes from.
type hay struct {
	*testing.T
	needles map[string][]byte

	mu   sync.Mutex
	size map[string]int // bytes searched, by place
}

// search reports every secret in the data.
func (h *hay) search(where string, data []byte) {
	h.mu.Lock()
	h.size[strings.Fields(where)[0]] += len(data)
	h.mu.Unlock()
	for name, n := range h.needles {
		if i := bytes.Index(data, n); i >= 0 {
			h.Errorf("%s holds the secret %s: ...%q", where, name, data[max(0, i-60):min(len(data), i+len(n)+60)])
		}
	}
}

// RoundTrip searches all replies.
type tee struct {
	http.RoundTripper
	h *hay
}

func (x tee) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := x.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	x.h.search("reply of "+r.Method+" "+r.URL.Path, append(data, fmt.Sprint(resp.Header)...))
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, err
}

// Programs of the role reporter.
var (
	progGet = rig.Program(`
	r, err := call.Fetch(call.Args[0].(string))
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": r.Status, "body": r.Body, "header": r.Header}, nil`)
	progPanics = rig.Program(`
	r, err := call.Fetch(call.Args[0].(string))
	if err != nil {
		return nil, err
	}
	panic(r.Body)`)
	progFails = rig.Program(`
	r, err := call.Fetch(call.Args[0].(string))
	if err != nil {
		return nil, err
	}
	return nil, recurgent.Fail("parse_failed", "cannot read " + r.Body)`)
	progCrash = "package tool\n\nimport \"recurgent\"\n\nfunc deep(n int, s string) string { return s + deep(n+1, s) }\n\n" + `func Run(call *recurgent.Call) (any, error) {
	r, err := call.Fetch(call.Args[0].(string))
	if err != nil {
		return nil, err
	}
	return deep(0, r.Body), nil
}
`
	progHold = rig.Program(`
	r, err := call.Fetch(call.Args[0].(string))
	if err != nil {
		return nil, err
	}
	if o := call.Tool("helper").Call("wait", 1); !o.OK() {
		return nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)
	}
	return r.Body, nil`)
)

// collector takes traces.
func collector(h *hay) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		data, _ := io.ReadAll(body)
		h.search("traces", data)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	h.Cleanup(s.Close)
	return s
}

// No byte that leaves the daemon or stays, but for the requests to the APIs themselves, holds a secret: a canary of
// each kind goes through calls that succeed, fail, are repaired, replayed, judged and crash, and all that can be read
// of them is searched.
func TestCanaries(t *testing.T) {
	t.Parallel()
	h := &hay{T: t, needles: needles(), size: map[string]int{}}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.search("other host", []byte(fmt.Sprint(r.Header, r.URL)))
		fmt.Fprint(w, "elsewhere")
	}))
	t.Cleanup(other.Close)
	m := rig.NewModel(t, rig.Script{"reporter.get": {progGet}, "reporter.panics": {progPanics, progGet},
		"reporter.fails": {progFails, progGet}, "reporter.crash": {progCrash}, "reporter.hold": {progHold},
		"helper.wait": {rig.Held(rig.ProgGiven)}})
	secrets, recording := t.TempDir(), filepath.Join(t.TempDir(), "recording.jsonl")
	rig.WriteAt(t, filepath.Join(secrets, "query.txt"), kindCanary("query")+"\n")
	d := rig.StartIn(t, m, []string{"RECURGENT_SECRET_HEADER=" + kindCanary("header"),
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + collector(h).URL + "/v1/traces",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"},
		"--fetch-allow", "127.0.0.1", "--log-level", "debug", "--secrets-dir", secrets, "--provider", "record",
		"--recording", recording, "--provider-timeout", "1h")
	d.HTTP.Transport = tee{d.HTTP.Transport, h}
	apis := connectAPIs(t, d, other.URL)

	session := d.Session("reporter", map[string]any{"debug": true})
	for kind, a := range apis {
		h.use(d, session, a)
		if a.accepted.Load() < 5 {
			t.Errorf("%s: the API saw its secret in %d requests only", kind, a.accepted.Load())
		}
	}
	h.memory(d, m, session, apis["bearer"])
	h.lookAround(d, session)

	d.Stop(syscall.SIGTERM)
	for name, data := range d.Everything() {
		h.search("data directory "+name, data)
	}
	for _, r := range m.Requests() {
		h.search("prompt", rig.MustJSON(r.Body))
	}
	recorded, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	h.search("recording", recorded)
	h.search("log", []byte(d.Output.String()))
	for _, place := range []string{"reply", "traces", "prompt", "recording", "log", "data", "export", "runner", "eject",
		"mcp", "other"} {
		if h.size[place] == 0 {
			t.Errorf("nothing was searched of %s", place)
		}
	}
}

// connect makes a connection of each kind: from standard input, from the environment, from a file and by the REST
// interface.
func connectAPIs(t *testing.T, d *rig.Daemon, other string) map[string]*guardedAPI {
	t.Helper()
	apis := map[string]*guardedAPI{}
	tokens := newTokens(t)
	for kind, k := range kinds {
		a := newGuardedAPI(t, kind, other)
		apis[kind] = a
		auth := map[string]any{"secret": kindCanary(kind)}
		for name, v := range k.auth {
			auth[name] = v
		}
		switch kind {
		case "bearer":
			pipe(t, d, kindCanary(kind)+"\n", "connections", "set", kind, "--host", a.host(), "--description", "an API")
			continue
		case "header":
			auth["secret"] = map[string]any{"env": "RECURGENT_SECRET_HEADER"}
		case "query":
			auth["secret"] = map[string]any{"file": "query.txt"}
		case "oauth2":
			auth["token_url"] = tokens.URL + "/token"
		}
		d.Do(http.StatusCreated, http.MethodPut, "/v1/connections/"+kind,
			map[string]any{"hosts": []string{a.host()}, "methods": []string{"GET"}, "roles": []string{"reporter"},
				"auth": auth})
	}
	return apis
}

// use takes the API through all that can happen to a call.
func (h *hay) use(d *rig.Daemon, session string, a *guardedAPI) {
	h.Helper()
	ok := d.Call(session, "get", a.URL+"/ok")
	if !ok.Outcome.OK || !strings.Contains(fmt.Sprint(ok.Outcome.Value), control) ||
		!strings.Contains(fmt.Sprint(ok.Outcome.Value), "[masked]") {
		h.Errorf("get: %+v", ok.Outcome)
	}
	for name, written := range oddly(a.want) {
		if strings.Contains(fmt.Sprint(ok.Outcome.Value), written) {
			h.Errorf("get: the value holds the secret as %s", name)
		}
	}
	if coded := d.Call(session, "get", a.URL+"/coding"); !strings.Contains(coded.Outcome.ErrorMessage,
		"content coding") {
		h.Errorf("coding: %+v", coded.Outcome)
	}
	d.Call(session, "get", a.URL+"/gzip")
	d.Call(session, "get", a.URL+"/fail")
	d.Call(session, "get", a.URL+"/cut")
	if away := d.Call(session, "get", a.URL+"/away"); !strings.Contains(fmt.Sprint(away.Outcome.Value), "elsewhere") {
		h.Errorf("away: %+v", away.Outcome)
	}
	if leak := d.Call(session, "get", a.URL+"/leak"); leak.Outcome.OK &&
		strings.Contains(fmt.Sprint(leak.Outcome.Value), "cAnAry") {
		h.Errorf("a redirect carried the secret away: %+v", leak.Outcome)
	}
	d.Call(session, "panics", a.URL+"/ok")
	d.Call(session, "fails", a.URL+"/ok")
	d.Call(session, "crash", a.URL+"/ok")
	d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+ok.CallID+"/replay", nil)
	d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+ok.CallID+"/verdict", map[string]any{"verdict": "right"})
	d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("reporter", "get")+"/try",
		map[string]any{"args": []any{a.URL + "/ok"}, "kwargs": map[string]any{}, "fetch": "live"})
	d.Do(http.StatusOK, http.MethodPost, "/v1/functions/reporter__get",
		map[string]any{"arguments": map[string]any{"args": []any{a.URL + "/ok"}}})
	a.revoked.Store(true)
	refused := d.Call(session, "get", a.URL+"/ok")
	a.revoked.Store(false)
	if refused.Outcome.OK || !strings.Contains(refused.Outcome.ErrorMessage,
		"answered 401: it does not accept the secret of the connection") {
		h.Errorf("revoked: %+v", refused.Outcome)
	}
	if l := d.LogOf(refused); l["failure_class"] != "extrinsic" || l["repair_attempted"] == true {
		h.Errorf("revoked: failure_class %v, repair_attempted %v", l["failure_class"], l["repair_attempted"])
	}
}

// memory searches the runners while a program holds an API's answer, and waits for another program that the model is to
// write: of all waiting, that for the model can be as long as the search is.
func (h *hay) memory(d *rig.Daemon, m *rig.Model, session string, a *guardedAPI) {
	h.Helper()
	r := d.Send(http.MethodPost, "/v1/sessions/"+session+"/calls",
		rig.Encode(h.T, map[string]any{"method": "hold", "args": []any{a.URL + "/ok"}}),
		map[string]string{"Prefer": "respond-async"})
	id, _ := r.Object(h.T)["call_id"].(string)
	rig.Until(h.T, "the program waits", func() bool { return m.Count("helper", "wait") == 1 })
	var held [][]byte
	for _, pid := range children(d.Cmd.Process.Pid) {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		h.search("runner environment", env)
		if bytes.Contains(env, []byte("RECURGENT_SECRET")) {
			h.Errorf("a runner has the daemon's environment: %q", env)
		}
		held = append(held, processMemory(pid))
	}
	m.Release()
	found := 0
	for _, data := range held {
		h.search("runner memory", data)
		found += bytes.Count(data, []byte(control))
	}
	var ended map[string]any
	rig.Until(h.T, "the program's end",
		func() bool { ended = d.Get("/v1/calls/" + id); return ended["outcome_status"] != "running" })
	if ended["outcome_status"] != "ok" {
		h.Errorf("hold: %v", ended)
	}
	if found == 0 {
		h.Error("the answer was found in no runner's memory: the search proves nothing")
	}
}

// lookAround reads everything else that the daemon shows.
func (h *hay) lookAround(d *rig.Daemon, session string) {
	h.Helper()
	for _, path := range []string{"/metrics", "/v1/connections", "/v1/connections/bearer", "/v1/calls?limit=1000",
		"/v1/sessions/" + session + "/history?limit=1000", "/v1/maintenance/audit?limit=1000",
		"/v1/tools", "/v1/tools?format=openai", "/v1/tools?format=mcp", rig.MethodPath("reporter", "get"),
		rig.MethodPath("reporter", "get") + "/generations",
		rig.MethodPath("reporter", "get") + "/fixtures", rig.MethodPath("reporter", "get") + "/examples",
		rig.MethodPath("reporter", "fails"), "/v1/recommendations", "/v1/reports/history-usage", "/v1/version",
		"/openapi.yaml"} {
		d.Do(http.StatusOK, http.MethodGet, path, nil)
	}
	for _, call := range d.List("/v1/calls") {
		d.Get("/v1/calls/" + call["call_id"].(string))
	}
	for _, bad := range []map[string]any{{"hosts": []string{"x y"}},
		{"auth": map[string]any{"type": "digest", "secret": kindCanary("bearer")}}, {"methods": []string{"TRACE"}},
		{"hosts": []string{"*.example.org"}},
		{"auth": map[string]any{"type": "bearer", "secret": kindCanary("bearer") + "\n"}}} {
		body := map[string]any{"hosts": []string{"a.example.org"}, "methods": []string{"GET"}, "roles": []string{"*"},
			"auth": map[string]any{"type": "bearer"}}
		for name, v := range bad {
			body[name] = v
		}
		d.Do(http.StatusUnprocessableEntity, http.MethodPut, "/v1/connections/bearer", body)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/connections/basic", nil)
	last := d.List("/v1/maintenance/audit")[0]["id"].(string)
	d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/audit/"+last+"/undo", nil)
	if again := d.Get("/v1/connections/basic"); again["secret_set"] != false {
		h.Errorf("undo brought a secret back: %v", again)
	}
	h.agent(d)
	dir := filepath.Join(h.TempDir(), "ejected")
	out, errs, code := d.Client("tools", "eject", "reporter", "get", dir)
	if code != 0 {
		h.Errorf("eject: %s%s", out, errs)
	}
	for name, data := range rig.Files(h.T, dir) {
		h.search("eject "+name, data)
	}
	for _, args := range [][]string{{"connections", "list"}, {"tools", "audit"}, {"tools", "show", "reporter", "get"},
		{"history", session}, {"doctor"}} {
		out, errs, _ := d.Client(args...)
		h.search("command "+args[0], []byte(out+errs))
	}
	h.export(d)
}

// agent speaks MCP.
func (h *hay) agent(d *rig.Daemon) {
	h.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(h.Context(), &mcp.StreamableClientTransport{Endpoint: d.URL + "/mcp"}, nil)
	if err != nil {
		h.Fatal(err)
	}
	defer s.Close()
	tools, err := s.ListTools(context.Background(), nil)
	if err != nil {
		h.Fatal(err)
	}
	h.search("mcp tools", rig.MustJSON(tools))
}

// export searches the files in an export.
func (h *hay) export(d *rig.Daemon) {
	h.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(d.Do(http.StatusOK, http.MethodGet, "/v1/maintenance/export", nil).Body))
	if err != nil {
		h.Fatal(err)
	}
	for archive := tar.NewReader(zip); ; {
		file, err := archive.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			h.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			h.Fatal(err)
		}
		h.search("export "+file.Name, data)
		if strings.Contains(file.Name, "secrets.key") || bytes.Contains(data, []byte("AGE-SECRET-KEY")) {
			h.Errorf("the export holds the key: %s", file.Name)
		}
		if file.Name == "connections.json" && !json.Valid(data) {
			h.Errorf("connections.json: %s", data)
		}
	}
}
