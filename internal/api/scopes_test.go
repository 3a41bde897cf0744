package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	document "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

func newTable(t *testing.T) *table {
	t.Helper()
	reg := telemetry.NewRegistry()
	o := DefaultOptions()
	o.Namespaces, o.Registry, o.Metrics, o.OpenAPI = only(t, &fake{}), reg, telemetry.New(reg, telemetry.Build{}),
		document.OpenAPI
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	return s.table
}

// The table of operations and the document list the same operations, with the same paths and scopes, both in the
// extensions for programs and in the texts for people. The console's page alone is not in the document: it is described
// at /ui, which leads there, since linters refuse the path /ui/.
func TestScopesAndDocumentAgree(t *testing.T) {
	t.Parallel()
	rows := newTable(t).rows
	described := map[string]bool{}
	for path, item := range loadDocument(t).Paths.Map() {
		if len(path) > 1 && strings.HasSuffix(path, "/") {
			t.Errorf("%s ends in a slash, which linters refuse", path)
		}
		for method, op := range item.Operations() {
			described[op.OperationID] = true
			row, ok := rows[op.OperationID]
			if !ok || row.method != method || row.pattern != path {
				t.Errorf("%s %s is %s, which the table has as %+v", method, path, op.OperationID, row)
				continue
			}
			checkDescribed(t, row, op)
		}
	}
	for id := range rows {
		if !described[id] && id != "getConsole" {
			t.Errorf("the document has no operation %s", id)
		}
	}
}

func checkDescribed(t *testing.T, row operation, op *openapi3.Operation) {
	t.Helper()
	if row.needs == anyone {
		if op.Security == nil || len(*op.Security) != 0 {
			t.Errorf("%s needs no token, and its security is not []", row.id)
		}
		return
	}
	want := []string{row.needs.String()}
	if row.needs == byMessage {
		want = []string{}
	}
	if op.Security == nil || len(*op.Security) != 2 || len((*op.Security)[0]) != 0 ||
		!slices.Equal((*op.Security)[1]["bearer"], want) {
		t.Errorf("%s: security is %v, want none or bearer with %v", row.id, op.Security, want)
	}
	if words := "scope `" + row.needs.String() + "`"; row.needs != byMessage &&
		!strings.Contains(op.Description, words) {
		t.Errorf("%s: the description does not say: %s", row.id, words)
	}
	for _, status := range []string{"401", "403"} {
		if op.Responses.Value(status) == nil {
			t.Errorf("%s: has no %s", row.id, status)
		}
	}
}

// alone are the paths at which the scope call suffices for a change, since it affects only the caller's own objects.
var alone = []string{"/v1/sessions", "/v1/calls/", "/v1/files", "/v1/functions/", "/v1/predict",
	"/v1/signatures/{name}/predict"}

// Every change needs more than the scope read, and a change of shared objects needs operate or admin, whatever table
// and document agree on.
func TestScopesOfWrites(t *testing.T) {
	t.Parallel()
	seen := map[access.Scope]int{}
	for _, row := range newTable(t).rows {
		own := slices.ContainsFunc(alone, func(path string) bool { return strings.HasPrefix(row.pattern, path) })
		switch {
		// which changes nothing
		case row.method == http.MethodGet || row.id == "mcp" || row.id == "simulatePolicy":
			continue
		case row.needs == access.Operate || row.needs == access.Admin, own && row.needs == access.Call:
		default:
			t.Errorf("%s (%s %s) needs %q", row.id, row.method, row.pattern, row.needs)
		}
		seen[row.needs]++
	}
	if seen[access.Call] < 10 || seen[access.Operate] < 15 || seen[access.Admin] < 4 {
		t.Errorf("operations that change things, by scope: %v", seen)
	}
}

// Without its scope an operation is refused before it is served. One that needs no scope is an error.
func TestOperationsNeedScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id    string
		needs access.Scope
		about subject
	}{{"new", 0, ofNamespace}, {"", access.Read, ofNamespace}, {"getPolicy", access.Read, ofNamespace},
		{"new", access.Read, 0}} {
		tab := newTable(t)
		if tab.err != nil {
			t.Fatal(tab.err)
		}
		tab.add(c.id, demand{c.needs, c.about}, "GET /v1/new", tab.s.getPolicy)
		if tab.err == nil {
			t.Errorf("the operation %q with the scope %d about %d is taken", c.id, c.needs, c.about)
		}
	}
}

func withScopes(scopes string) func(*Options) {
	return func(o *Options) {
		tokens, err := access.ParseTokens([]byte("local 0123456789abcdef scopes=" + scopes))
		if err != nil {
			panic(err) // the text is the test's own
		}
		o.Auth = tokens
	}
}

func TestScopeIsMissing(t *testing.T) {
	t.Parallel()
	g := newRig(t, withScopes("read,call"))
	got := g.ask("PUT", "/v1/tools/calculator", `{"contract": {}}`, "Authorization: Bearer 0123456789abcdef")
	p := got.json(t)
	if got.status != 403 || p["code"] != codeScope || p["missing"] != "operate" || len(p["scopes"].([]any)) != 2 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if h := got.header.Get("WWW-Authenticate"); h != `Bearer realm="recurgentd", error="insufficient_scope", scope="operate"` {
		t.Errorf("WWW-Authenticate: %s", h)
	}
	if len(g.fake.asked) != 0 {
		t.Errorf("the runtime was asked for %v", g.fake.asked)
	}
}

// Some operations need a further scope for some of their parameters.
func TestScopesOfParts(t *testing.T) {
	t.Parallel()
	const token = "Authorization: Bearer 0123456789abcdef"
	for _, c := range []struct {
		scopes, method, path, body string
		status                     int
		missing                    string
	}{
		{"operate", "PATCH", "/v1/policy", `{"repair_enabled": false}`, 200, ""},
		{"operate", "PATCH", "/v1/policy", `{"spend": null}`, 403, "admin"},
		{"operate", "PATCH", "/v1/policy", `{"Spend": {"day_tokens": 0}}`, 403, "admin"},
		{"admin", "PATCH", "/v1/policy", `{"repair_enabled": false}`, 403, "operate"},
		{"operate", "POST", "/v1/maintenance/audit/audit_1/undo", "", 200, ""},
		{"operate", "POST", "/v1/maintenance/audit/audit_connection/undo", "", 403, "admin"},
		{"call", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 403, "read"},
		{"read", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__b"}}`, 403,
			"call"},
	} {
		g := newRig(t, func(o *Options) {
			withScopes(c.scopes)(o)
			o.Namespaces.(*one).mcp = http.NotFoundHandler()
		})
		got := g.ask(c.method, c.path, c.body, token)
		problem := got.json(t)
		if fault, ok := problem["error"].(map[string]any); ok {
			problem, _ = fault["data"].(map[string]any)
		}
		if got.status != c.status || c.status == 403 && problem["missing"] != c.missing {
			t.Errorf("%s with %s: %s %s: %d %s", c.scopes, c.body, c.method, c.path, got.status, got.body)
		}
	}
}

// A verdict takes effect at once only if its author has the scope operate.
func TestVerdictsByScope(t *testing.T) {
	t.Parallel()
	for scopes, want := range map[string]bool{"call": false, "call,operate": true} {
		g := newRig(t, withScopes(scopes))
		got := g.ask("POST", "/v1/calls/"+knownCall+"/verdict", `{"verdict": "right"}`,
			"Authorization: Bearer 0123456789abcdef")
		if got.status != 200 || g.fake.judgement.MayOperate != want {
			t.Errorf("%s: %d, MayOperate %v", scopes, got.status, g.fake.judgement.MayOperate)
		}
	}
}

func TestPublicMetrics(t *testing.T) {
	t.Parallel()
	for _, public := range []bool{false, true} {
		g := newRig(t, func(o *Options) {
			withScopes("read")(o)
			o.MetricsPublic = public
		})
		want := 401
		if public {
			want = 200
		}
		if got := g.ask("GET", "/metrics", ""); got.status != want {
			t.Errorf("public %v: %d, want %d", public, got.status, want)
		}
	}
}

// An operation on a session or a call of its path is about it, so that it is served to the owner only. A call of a
// method checks the session itself.
func TestSubjectsOfPaths(t *testing.T) {
	t.Parallel()
	checked := map[subject]int{}
	for _, row := range newTable(t).rows {
		want := row.about
		switch {
		case strings.Contains(row.pattern, "{call_id}"):
			want = ofCall
		case strings.HasPrefix(row.pattern, "/v1/sessions/{id}") && row.id != "createCall":
			want = ofSession
		}
		if checked[want]++; row.about != want {
			t.Errorf("%s (%s %s) is about %d, not %d", row.id, row.method, row.pattern, row.about, want)
		}
	}
	if checked[ofCall] != 8 || checked[ofSession] != 6 {
		t.Errorf("subjects of paths: %v", checked)
	}
}

// Principals without the scope operate see only their own objects: the fake's session and call are local's.
func TestOwnSessionsOnly(t *testing.T) {
	t.Parallel()
	session, call := "/v1/sessions/"+knownSession, "/v1/calls/"+knownCall
	requests := []struct{ method, path, body string }{
		{"GET", session, ""}, {"GET", session + "/context", ""}, {"PATCH", session + "/context", `{"a": 1}`},
		{"GET", session + "/history", ""}, {"GET", session + "/methods/add", ""},
		{"DELETE", session, ""}, {"GET", call, ""}, {"GET", call + "/events", ""}, {"POST", call + "/cancel", ""},
		{"POST", call + "/replay", ""},
		{"POST", call + "/verdict", `{"verdict": "right"}`}, {"GET", call + "/verdict", ""},
		{"DELETE", call + "/verdict", ""},
	}
	for token, mine := range map[string]bool{"local 0123456789abcdef scopes=read,call": true,
		"ben 0123456789abcdef scopes=read,call": false, "ben 0123456789abcdef scopes=read,call,operate": true} {
		g := newRig(t, func(o *Options) {
			tokens, err := access.ParseTokens([]byte(token))
			if err != nil {
				t.Fatal(err)
			}
			o.Auth = tokens
		})
		for _, q := range requests {
			got := g.ask(q.method, q.path, q.body, "Authorization: Bearer 0123456789abcdef")
			if mine != (got.status < 300) || !mine && got.status != 404 {
				t.Errorf("%s: %s %s: %d %s", token, q.method, q.path, got.status, got.body)
			}
		}
	}
}
