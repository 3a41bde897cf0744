//go:build postgres

package replicas

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	document "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// bodies are what the operations of the document that need one are asked with.
var bodies = map[string]string{
	"createSession": `{"role":"clerk"}`, "patchContext": `{"a":1}`,
	"createCall": `{"method":"fetched","args":["SOURCE"]}`, "callFunction": `{"arguments":{"args":["SOURCE"]}}`,
	"mcp": `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "putTool": `{"purpose":"another"}`,
	"judgeCall": `{"verdict":"right"}`, "putEffects": `{"hosts":["*"]}`,
	"putExamples": `{"examples":[{"args":[1],"expect":{"value":1}}]}`,
	"tryProgram":  `{"args":["SOURCE"],"fetch":"live"}`, "runExamples": `{}`, "prune": `{"stale_days":1}`,
	"restore":        `{"role":"old"}`,
	"simulatePolicy": `{"patch":{"approval_required":true}}`, "patchPolicy": `{"repair_enabled":false}`,
	"uploadFile":    "bytes",
	"putConnection": `{"hosts":["a.example.org"],"methods":["GET"],"roles":["*"],"auth":{"type":"bearer","secret":"swordfish"}}`,
	"predict":       `{"signature":{"inputs":[{"name":"q"}],"outputs":[{"name":"a"}]},"inputs":{"q":"x"}}`,
	"putSignature":  `{"inputs":[{"name":"q"}],"outputs":[{"name":"a"}]}`,
	"predictNamed":  `{"inputs":{"q":"x"}}`, "putProgram": `{"code":` + string(rig.MustJSON(rig.ProgGiven)) + `}`,
}

// without are the operations that need no database, or are answered from what the daemon remembers.
var without = []string{"healthz", "metrics", "openapi", "getDocs", "getProblem", "home", "enterConsole",
	"getConsoleFile", "getMe", "getVersion", "getSystem", "getPolicy", "getEvents",
	"getProtectedResource", "getProtectedResourceOfMCP"}

// An operation is one of the document, as it is asked for.
type operation struct {
	id, method, path string
	streams          bool
}

func operations(t *testing.T, names ...string) (all []operation) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer(names...)
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			all = append(all, operation{o.OperationID, method, fill.Replace(path), path == "/v1/events" ||
				strings.HasSuffix(path, "/events")})
		}
	}
	return all
}

// An outage is one way in which a database is away.
type outage struct {
	name string
	// start returns the URL of a database, and what takes it away and gives it back.
	start func(t *testing.T) (url string, take, give func())
}

var outages = []outage{
	{"its server is killed", func(t *testing.T) (string, func(), func()) {
		c := pgtest.Start(t, pgtest.Options{})
		return c.CreateDatabase(t, "away"), func() { c.Kill(t) }, func() { c.Restart(t) }
	}},
	{"the network is silent", func(t *testing.T) (string, func(), func()) {
		c := pgtest.Start(t, pgtest.Options{})
		c.CreateDatabase(t, "away")
		p := NewProxy(t, "unix", c.Sockets()[0])
		release := func() {}
		return "postgres://postgres@" + p.Address + "/away?sslmode=disable", func() { release = p.Hold() },
			func() { release() }
	}},
}

// While the database is away the daemon says so: /readyz is 503, and what needs it is refused with 503 and when to try
// again, by every operation of the document; nothing is run and no model asked. A call that was under way is kept once,
// and all goes on by itself when the database is back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	for _, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			away(t, o)
		})
	}
}

func away(t *testing.T, o outage) {
	url, take, give := o.start(t)
	source, gate := rig.NewSource(t, rig.ItemsBody), apptest.NewGate(t)
	waiting := rig.Program("\tif _, err := call.Fetch(\"http://" + gate.Host +
		"/\"); err != nil {\n\t\treturn nil, err\n\t}\n\tn, _ := call.Context[\"n\"].(float64)\n\tcall.Context[\"n\"] = n + 1\n\treturn n + 1, nil")
	delegates := rig.Program("\tcall.Delegate(\"finder\", recurgent.Contract{Deliverable: map[string]any{" +
		"\"type\": \"array\", \"minItems\": 1}})\n\treturn true, nil")
	m := rig.NewModel(t, rig.Script{"clerk.fetched": {rig.ProgFetches}, "clerk.waiting": {waiting},
		"clerk.delegates": {delegates}})
	m.Answer("", "", rig.Text(`{"a": "yes"}`))
	d := on(t, m, url, keyFile(t), "--fetch-allow", source.Host()+","+gate.Host)
	session, other := d.Session("clerk"), d.Session("clerk")
	got := d.Call(session, "fetched", source.URL)
	d.WantValue(got, []any{"a", "b"}, "generated")
	file := upload(d, "bytes")
	d.Do(http.StatusCreated, http.MethodPut, "/v1/signatures/qa",
		map[string]any{"inputs": []any{map[string]any{"name": "q"}}, "outputs": []any{map[string]any{"name": "a"}}})
	entry := fmt.Sprint(d.List("/v1/maintenance/audit")[0]["id"])
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/finder",
		map[string]any{"purpose": "find things", "deliverable": map[string]any{"type": "array"}})
	d.WantValue(d.Call(session, "delegates"), true, "generated")
	proposal := proposed(d)
	under := make(chan rig.Response, 1)
	go func() {
		r, err := d.Try(context.Background(), http.MethodPost, "/v1/sessions/"+other+"/calls",
			[]byte(`{"method":"waiting"}`), nil)
		if err != nil {
			t.Error(err)
		}
		under <- r
	}()
	<-gate.Entered
	asked, fetched := len(m.Questions()), source.Requests()

	take()
	gate.Open()
	rig.Until(t, "/readyz is 503", func() bool {
		return d.Send(http.MethodGet, "/readyz", nil, nil).Status == http.StatusServiceUnavailable
	})
	var sent sync.WaitGroup
	for _, op := range operations(t, "/v1/sessions/{id}", "/v1/sessions/"+session, "{call_id}", got.CallID,
		"/v1/files/{id}", "/v1/files/"+file,
		"/v1/tools/{role}/proposals/{id}", "/v1/tools/finder/proposals/"+proposal, "{role}", "clerk", "{method}",
		"fetched",
		"/examples/{id}", "/examples/ex_1", "/audit/{id}", "/audit/"+entry, "/recommendations/{id}",
		"/recommendations/rec_1", "/connections/{name}", "/connections/news",
		"/namespaces/{name}", "/namespaces/acme", "/signatures/{name}", "/signatures/qa", "/functions/{name}",
		"/functions/clerk__fetched", "{code}", "not_found") {
		sent.Go(func() { refusedFor(t, d, op, source.URL) })
	}
	sent.Wait()
	if now := len(m.Questions()); now != asked {
		t.Errorf("the model was asked %d times while the database was away", now-asked)
	}
	if now := source.Requests(); now != fetched {
		t.Errorf("programs ran while the database was away: %d fetches", now-fetched)
	}
	give()

	if r := <-under; r.Status != http.StatusOK || !strings.Contains(string(r.Body), `"value":1`) {
		t.Errorf("the call that was under way: %d %s", r.Status, r.Body)
	}
	rig.Until(t, "/readyz is 200",
		func() bool { return d.Send(http.MethodGet, "/readyz", nil, nil).Status == http.StatusOK })
	if n := len(d.History(other)); n != 1 {
		t.Errorf("it has %d records", n)
	}
	if n := d.Get("/v1/sessions/" + other + "/context")["n"]; n != 1.0 {
		t.Errorf("it counted to %v", n)
	}
	if n := d.Artifact("clerk", "waiting")["success_count"]; n != 1.0 {
		t.Errorf("it is counted %v times", n)
	}
	d.WantValue(d.Call(session, "fetched", source.URL), []any{"a", "b"}, "persisted")
	if now := len(d.History(session)); now != 3 {
		t.Errorf("%d records of three calls", now)
	}
}

// proposed returns the id of the one contract that waits for a person's decision.
func proposed(d *rig.Daemon) string {
	d.T.Helper()
	waiting := d.List("/v1/inbox?kind=proposal")
	if len(waiting) != 1 {
		d.T.Fatalf("%d proposals wait, want one", len(waiting))
	}
	contract := waiting[0]["evidence"].(map[string]any)["contract"].(map[string]any)
	return contract["id"].(string)
}

// refusedFor asks for the operation while the database is away.
func refusedFor(t *testing.T, d *rig.Daemon, op operation, source string) {
	var body []byte
	header := map[string]string{}
	if text, ok := bodies[op.id]; ok {
		body = []byte(strings.ReplaceAll(text, "SOURCE", source))
	}
	switch op.id {
	case "mcp":
		header["Accept"] = "application/json, text/event-stream"
	case "uploadFile":
		header["Content-Type"] = "text/plain"
	case "patchContext", "patchPolicy":
		header["Content-Type"] = "application/merge-patch+json"
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := ask(ctx, d, op, body, header)
	switch {
	case err != nil:
		t.Errorf("%s: %v", op.id, err)
	case slices.Contains(without, op.id):
		if r.Status >= 500 {
			t.Errorf("%s, which needs no database: %d %s", op.id, r.Status, r.Body)
		}
	case op.id == "mcp": // has errors of its own
		if text := string(r.Body); !strings.Contains(text, `"code":-32000,"message":"`) ||
			!strings.Contains(text, "the database does not answer") || strings.Contains(text, "postgres") {
			t.Errorf("mcp: %s", text)
		}
	case r.Status != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "":
		t.Errorf("%s: %d %.300s, want 503 and Retry-After", op.id, r.Status, r.Body)
	default:
		rig.CheckProblem(t, op.id, r)
		if p := r.Object(t); p["code"] != "database_unavailable" || strings.Contains(string(r.Body), "disk") ||
			strings.Contains(string(r.Body), "postgres") {
			t.Errorf("%s: %s, want words about the database and not where it is", op.id, r.Body)
		}
	}
}

// ask sends the request; of a stream that began it reads nothing.
func ask(ctx context.Context, d *rig.Daemon, op operation, body []byte,
	header map[string]string) (rig.Response, error) {
	if !op.streams {
		return d.Try(ctx, op.method, op.path, body, header)
	}
	req, err := http.NewRequestWithContext(ctx, op.method, d.URL+op.path, http.NoBody)
	if err != nil {
		return rig.Response{}, err
	}
	resp, err := (&http.Client{Timeout: rig.Patience}).Do(req)
	if err != nil {
		return rig.Response{}, err
	}
	defer resp.Body.Close()
	r := rig.Response{Status: resp.StatusCode, Header: resp.Header}
	if resp.StatusCode >= 300 {
		r.Body = make([]byte, 1<<12)
		n, _ := resp.Body.Read(r.Body)
		r.Body = r.Body[:n]
	}
	return r, nil
}
