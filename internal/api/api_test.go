package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	document "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Every reply matches the document.
func TestEveryOperationAnswers(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	close(g.fake.done) // releases what the first call holds of its owner's shares
	g.fake.done = make(chan runtime.CallResult, 1)
	g.fake.done <- runtime.CallResult{Body: mustJSON(t, reply1("calculator", "add")), OK: true}
	s, a := "/v1/sessions/"+knownSession, "/v1/tools/calculator/methods/add"
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/sessions",
			`{"role":"calculator","model":null,"contract":{"purpose":"x","deliverable":{"type":"object"},"acceptance":["a"],"failure_policy":{"a":1},"signature":{"inputs":[]}},"context":{"a":1},"debug":true,"metadata":{"a":"b"}}`, 201},
		{"GET", "/v1/sessions?limit=1&after=sess_x", "", 200},
		{"GET", s, "", 200},
		{"DELETE", s, "", 204},
		{"GET", s + "/context", "", 200},
		{"PATCH", s + "/context", `{"value":20,"gone":null}`, 200},
		{"POST", s + "/calls",
			`{"method":"add","args":[2,3],"kwargs":{},"role":null,"contract":null,"history":null,"timeout_ms":null}`,
			200},
		{"GET", s + "/history?limit=1&order=asc&status=ok&method=m&role=r&since=2026-11-21T02:10:00Z&until=2026-11-22T02:10:00Z", "", 200},
		{"GET", s + "/history?after=1&order=desc", "", 200},
		{"GET", s + "/methods/value=", "", 200},
		{"GET", "/v1/calls?role=r&method=m&status=running&source=none&error_type=x&weak_success=true&session_id=s&trace_id=t&parent_call_id=p&limit=1000", "", 200},
		{"GET", "/v1/calls/" + knownCall, "", 200},
		{"GET", "/v1/calls/" + knownCall + "/why", "", 200},
		{"POST", "/v1/calls/" + knownCall + "/cancel", "", 204},
		{"POST", "/v1/calls/" + knownCall + "/replay", "", 200},
		{"GET", "/v1/calls/" + knownCall + "/events?after=1", "", 200},
		{"GET", "/v1/events", "", 200},
		{"GET", "/v1/tools", "", 200},
		{"GET", "/v1/tools?format=openai&limit=1", "", 200},
		{"GET", "/v1/tools?format=mcp&after=calculator__add", "", 200},
		{"GET", "/v1/tools?format=other", "", 400},
		{"POST", "/v1/functions/calculator__add", `{"arguments":{"a":2,"b":3},"session_id":"` + knownSession + `"}`,
			200},
		{"GET", "/v1/tools/calculator", "", 200},
		{"PUT", "/v1/tools/movie%20finder%3F", `{"purpose":"find","methods":{"find":{"acceptance":["x"]}}}`, 200},
		{"DELETE", "/v1/tools/calculator?reason=old", "", 204},
		{"GET", "/v1/tools/calculator/methods", "", 200},
		{"GET", a, "", 200},
		{"PUT", a, `{"code":"package tool","reason":"by hand"}`, 200},
		{"DELETE", a, "", 204},
		{"GET", a + "/generations", "", 200},
		{"POST", a + "/quarantine", `{"reason":"suspect"}`, 200},
		{"POST", a + "/release", "", 200},
		{"POST", a + "/regenerate", "{}", 200},
		{"POST", a + "/promote", `{"reset_metrics":true}`, 200},
		{"POST", a + "/rollback", `{"generation":"gen-1"}`, 200},
		{"POST", a + "/pin", "", 200},
		{"POST", a + "/unpin", "", 200},
		{"POST", a + "/approve", "", 200},
		{"POST", "/v1/files?name=a.json&session_id=" + knownSession, `{"a":1}`, 201},
		{"GET", "/v1/files?limit=1&after=file_x", "", 200},
		{"GET", "/v1/files?after=x", "", 400},
		{"GET", "/v1/files/" + knownFile, "", 200},
		{"GET", "/v1/files/file_other", "", 404},
		{"GET", "/v1/files/" + knownFile + "/content", "", 200},
		{"DELETE", "/v1/files/" + knownFile, "", 204},
		{"GET", a + "/effects", "", 200},
		{"PUT", a + "/effects", `{"hosts":["*"],"methods":null,"reason":"needed"}`, 200},
		{"PUT", a + "/effects", `{"reason":"nothing"}`, 422},
		{"PUT", a + "/effects", `{"hosts":"api.example.org"}`, 422},
		{"GET", a + "/examples", "", 200},
		{"PUT", a + "/examples", `{"examples":[{"args":[1],"kwargs":{},"expect":{"value":null}}]}`, 200},
		{"PUT", a + "/examples",
			`{"examples":[{"args":[1],"expect":{"value":1}},{"args":[1.0],"expect":{"value":2}},{"args":[1],"expect":{"value":2}}]}`, 422},
		{"PUT", a + "/examples", `{"examples":[{"args":[1],"expect":{}}]}`, 422},
		{"GET", a + "/fixtures", "", 200},
		{"GET", "/v1/connections?limit=1&after=a", "", 200},
		{"GET", "/v1/connections/weather", "", 200},
		{"GET", "/v1/connections/none", "", 404},
		{"PUT", "/v1/connections/weather",
			`{"hosts":["a.example.org"],"methods":["GET"],"roles":["*"],"auth":{"type":"bearer","secret":"swordfish"}}`,
			200},
		{"PUT", "/v1/connections/other",
			`{"hosts":["a.example.org"],"methods":["GET"],"roles":["*"],"auth":{"type":"header","name":"X-Key","secret":{"env":"RECURGENT_SECRET_X"}}}`, 201},
		{"DELETE", "/v1/connections/weather?reason=old", "", 204},
		{"PUT", "/v1/namespaces/acme", "", 201},
		{"PUT", "/v1/namespaces/acme", "", 200},
		{"PUT", "/v1/namespaces/Acme", "", 400},
		{"GET", "/v1/namespaces?limit=1&after=a", "", 200},
		{"GET", "/v1/namespaces/acme", "", 200},
		{"GET", "/v1/namespaces/none", "", 404},
		{"DELETE", "/v1/namespaces/acme", "", 204},
		{"DELETE", "/v1/namespaces/acme", "", 404},
		{"DELETE", "/v1/namespaces/default", "", 409},
		{"POST", a + "/examples/run", "", 200},
		{"POST", a + "/examples/run", `{"examples": [{"args": [1], "expect": {"value": 2}}]}`, 200},
		{"POST", "/v1/tools/calculator/proposals/prop_known/accept", "", 200},
		{"POST", "/v1/tools/calculator/proposals/prop_known/reject", "{}", 200},
		{"POST", "/v1/tools/calculator/proposals/prop_other/accept", "", 404},
		{"POST", a + "/examples/ex_known/accept", "", 200},
		{"POST", a + "/examples/ex_known/reject", "", 200},
		{"POST", a + "/examples/ex_other/reject", "", 404},
		{"POST", a + "/try", `{"args":[1],"fetch":"denied"}`, 200},
		{"POST", "/v1/calls/" + knownCall + "/verdict", `{"verdict":"wrong","expected":700}`, 200},
		{"POST", "/v1/calls/" + knownCall + "/verdict", `{}`, 422},
		{"GET", "/v1/calls/" + knownCall + "/verdict", "", 200},
		{"DELETE", "/v1/calls/" + knownCall + "/verdict", "", 204},
		{"GET", "/v1/maintenance/stale?days=0", "", 200},
		{"POST", "/v1/maintenance/prune", `{"stale_days":1,"mode":"delete","dry_run":false}`, 200},
		{"POST", "/v1/maintenance/restore", `{"role":"old","method":"m"}`, 200},
		{"POST", "/v1/maintenance/audit/audit_1/undo", `{"reason":"by mistake"}`, 200},
		{"POST", "/v1/maintenance/audit/audit_1/undo", ``, 200},
		{"POST", "/v1/maintenance/audit/audit_9/undo", ``, 404},
		{"POST", "/v1/maintenance/audit/audit_gone/undo", ``, 409},
		{"GET", "/v1/maintenance/audit", "", 200},
		{"GET", "/v1/maintenance/audit?principal=local&format=json&limit=1", "", 200},
		{"GET", "/v1/maintenance/audit?principal=local&format=jsonl&limit=1", "", 200},
		{"GET", "/v1/maintenance/audit?format=yaml", "", 400},
		{"GET", "/v1/maintenance/audit/audit_1", "", 200},
		{"GET", "/v1/maintenance/audit/audit_9", "", 404},
		{"GET", "/v1/maintenance/audit/audit_1?x=1", "", 400},
		{"GET", "/v1/maintenance/export", "", 200},
		{"GET", "/v1/recommendations", "", 200},
		{"POST", "/v1/recommendations/rec_1/apply", "", 200},
		{"POST", "/v1/recommendations/rec_1/dismiss", "", 200},
		{"GET", "/v1/patterns/calculator", "", 200},
		{"GET", "/v1/reports/history-usage", "", 200},
		{"GET", "/v1/reports/trends", "", 200},
		{"GET", "/v1/usage", "", 200},
		{"POST", "/v1/predict", `{"signature":{"inputs":[{"name":"q"}],"outputs":[{"name":"a"}]},"inputs":{"q":"x"}}`,
			200},
		{"GET", "/v1/signatures", "", 200},
		{"GET", "/v1/signatures/qa", "", 200},
		{"PUT", "/v1/signatures/qa", `{"inputs":[{"name":"q"}],"outputs":[{"name":"a"}]}`, 201},
		{"DELETE", "/v1/signatures/qa", "", 204},
		{"POST", "/v1/signatures/qa/predict", `{"inputs":{"q":"x"}}`, 200},
		{"GET", "/v1/tools?q=add%20%3Cscript%3E&sort=failed&limit=2&after=x", "", 200},
		{"GET", "/v1/tools?sort=cost", "", 200},
		{"GET", "/v1/tools?sort=age", "", 400},
		{"GET", "/v1/tools?sort=used&after=nowhere", "", 400},
		{"GET", "/v1/tools?sort=used&format=mcp", "", 400},
		{"GET", "/v1/tools?q=" + strings.Repeat("x", 201), "", 400},
		{"GET", "/v1/inbox?kind=effects&role=r&method=m&limit=1", "", 200},
		{"GET", "/v1/inbox?kind=other", "", 400},
		{"GET", "/v1/inbox?after=nowhere", "", 400},
		{"GET", "/v1/inbox/events", "", 200},
		{"GET", "/v1/inbox/events?x=1", "", 400},
		{"POST", "/v1/policy/simulate", `{"patch":{"approval_required":true},"calls":10}`, 200},
		{"POST", "/v1/policy/simulate", `{"patch":{},"calls":1001}`, 422},
		{"POST", "/v1/policy/simulate", `{"patch":[]}`, 422},
		{"POST", "/v1/policy/simulate", `{"calls":1}`, 422},
		{"GET", "/v1/me", "", 200},
		{"GET", "/v1/system", "", 200},
		{"POST", "/v1/system/model/check", "", 200},
		{"GET", "/v1/system?x=1", "", 400},
		{"GET", "/v1/system?replica=rep_other", "", 404},
		{"GET", "/v1/version?replica=rep_other", "", 404},
		{"GET", "/v1/replicas", "", 200},
		{"GET", "/v1/policy", "", 200},
		{"PATCH", "/v1/policy", `{"repair_enabled":false}`, 200},
		{"GET", "/v1/version", "", 200},
		{"GET", "/healthz", "", 200},
		{"GET", "/readyz", "", 200},
		{"GET", "/metrics", "", 200},
		{"GET", "/openapi.yaml", "", 200},
		{"GET", "/.well-known/oauth-protected-resource", "", 404},
		{"GET", "/.well-known/oauth-protected-resource/mcp", "", 404},
		{"GET", "/docs", "", 200},
		{"GET", "/problems/not_found", "", 200},
		{"GET", "/", "", 404},
		{"GET", "/ui", "", 200},
		{"GET", "/ui/", "", 200},
		{"GET", "/ui/0/core/main.js", "", 404},
	} {
		got := g.ask(c.method, c.path, c.body)
		if got.status != c.status {
			t.Errorf("%s %s = %d, want %d: %s", c.method, c.path, got.status, c.status, got.body)
		}
		if got.header.Get("X-Request-Id") == "" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s lacks common headers: %v", c.method, c.path, got.header)
		}
	}
	seen := g.seen.Seen()
	for _, item := range loadDocument(t).Paths.Map() {
		for _, op := range item.Operations() {
			if stream := op.Responses.Status(http.StatusOK); stream != nil &&
				stream.Value.Content["text/event-stream"] != nil {
				continue // streams, which have tests of their own
			}
			if seen[op.OperationID] == nil {
				t.Errorf("operation %s was not tried", op.OperationID)
			}
		}
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Invalid input is a problem detail with a code and a hint, and nothing reaches the runtime.
func TestBadInput(t *testing.T) {
	t.Parallel()
	calls, tool := "/v1/sessions/"+knownSession+"/calls", "/v1/tools/"
	long := strings.Repeat("x", 201)
	for _, c := range []struct {
		name, method, path, body, header string
		status                           int
		code, pointer                    string
	}{
		{"cut off", "POST", calls, `{"method":`, "", 400, codeMalformed, "/method"},
		{"empty body", "POST", calls, ``, "Content-Type: application/json", 400, codeMalformed, ""},
		{"trailing data", "POST", calls, `{"method":"a"} {}`, "", 400, codeMalformed, ""},
		{"name twice", "POST", calls, `{"method":"a","method":"b"}`, "", 400, codeMalformed, "/method"},
		{"name twice in kwargs", "POST", calls, `{"method":"a","kwargs":{"x":{"y":1,"y":2}}}`, "", 400, codeMalformed,
			"/kwargs/x/y"},
		{"invalid UTF-8", "POST", calls, "{\"method\":\"\xff\"}", "", 400, codeMalformed, "/method"},
		{"too deep", "POST", calls, `{"method":"a","args":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) +
			`}`, "", 400, codeMalformed, ""},
		{"array", "POST", calls, `[]`, "", 422, codeInvalid, ""},
		{"null", "POST", calls, `null`, "", 422, codeInvalid, ""},
		{"unknown field", "POST", calls, `{"method":"a","extra":1}`, "", 422, codeInvalid, "/extra"},
		{"other case", "POST", calls, `{"Method":"a"}`, "", 422, codeInvalid, "/Method"},
		{"Kelvin sign", "POST", calls, `{"method":"a","\u212awargs":{}}`, "", 422, codeInvalid, "/\u212awargs"},
		{"no method", "POST", calls, `{"args":[]}`, "", 422, codeInvalid, "/method"},
		{"null method", "POST", calls, `{"method":null}`, "", 422, codeInvalid, "/method"},
		{"wrong type of method", "POST", calls, `{"method":5}`, "", 422, codeInvalid, "/method"},
		{"wrong type of args", "POST", calls, `{"method":"a","args":{}}`, "", 422, codeInvalid, "/args"},
		{"wrong type of kwargs", "POST", calls, `{"method":"a","kwargs":[]}`, "", 422, codeInvalid, "/kwargs"},
		{"wrong type of contract", "POST", calls, `{"method":"a","contract":"x"}`, "", 422, codeInvalid, "/contract"},
		{"unknown name in a contract", "POST", calls, `{"method":"a","contract":{"deliverables":{}}}`, "", 422,
			codeInvalid, "/contract/deliverables"},
		{"negative timeout", "POST", calls, `{"method":"a","timeout_ms":-1}`, "", 422, codeInvalid, "/timeout_ms"},
		{"broken timeout", "POST", calls, `{"method":"a","timeout_ms":1.5}`, "", 422, codeInvalid, "/timeout_ms"},
		{"huge timeout", "POST", calls, `{"method":"a","timeout_ms":1e300}`, "", 422, codeInvalid, "/timeout_ms"},
		{"method with slash", "POST", calls, `{"method":"a/b"}`, "", 422, codeInvalid, "/method"},
		{"method with control character", "POST", calls, `{"method":"a\u0000"}`, "", 422, codeInvalid, "/method"},
		{"method with a bidirectional control", "POST", calls, `{"method":"a\u202ed"}`, "", 422, codeInvalid,
			"/method"},
		{"method with a zero-width character", "POST", calls, `{"method":"ad\u200bd"}`, "", 422, codeInvalid,
			"/method"},
		{"role with a zero-width character", "POST", calls, `{"method":"a","role":"\ufeffr"}`, "", 422, codeInvalid,
			"/role"},
		{"role of a session with a zero-width character", "POST", "/v1/sessions", `{"role":"r\u2060"}`, "", 422,
			codeInvalid, "/role"},
		{"tool with a zero-width character", "PUT", "/v1/tools/a%E2%80%8Bb", `{"purpose":"x"}`, "", 422, codeName,
			"path:role"},
		{"program with a bidirectional control", "PUT", "/v1/tools/calculator/methods/a%E2%80%AEb",
			`{"code":"package tool"}`, "", 422, codeName, "path:method"},
		{"contract of a method with a zero-width character", "PUT", "/v1/tools/calculator",
			`{"methods":{"a\u200d":{"purpose":"x"}}}`, "", 422, codeInvalid, "/methods/a\u200d"},
		{"method of dots", "POST", calls, `{"method":".."}`, "", 422, codeInvalid, "/method"},
		{"empty method", "POST", calls, `{"method":""}`, "", 422, codeInvalid, "/method"},
		{"lone surrogate in a name", "POST", calls, `{"method":"\ud800"}`, "", 422, codeInvalid, "/method"},
		{"long role", "POST", calls, `{"method":"a","role":"` + long + `"}`, "", 422, codeInvalid, "/role"},
		{"form", "POST", calls, `method=a`, "Content-Type: application/x-www-form-urlencoded", 415, codeMedia, ""},
		{"no type", "POST", calls, `{"method":"a"}`, "Content-Type: ", 415, codeMedia, ""},
		{"other charset", "POST", calls, `{"method":"a"}`, "Content-Type: application/json; charset=latin1", 415,
			codeMedia, ""},
		{"merge patch for a call", "POST", calls, `{"method":"a"}`, "Content-Type: application/merge-patch+json", 415,
			codeMedia, ""},
		{"compressed", "POST", calls, `{"method":"a"}`, "Content-Encoding: gzip", 415, codeMedia, ""},
		{"byte order mark", "POST", calls, "\ufeff{\"method\":\"a\"}", "", 400, codeMalformed, ""},
		{"zero timeout", "POST", calls, `{"method":"a","timeout_ms":0}`, "", 422, codeInvalid, "/timeout_ms"},
		{"over the limit", "POST", calls, `{"method":"a","args":["` + strings.Repeat("x", 4<<20) + `"]}`, "", 413,
			codeBodyTooLarge, ""},
		{"bad key", "POST", calls, `{"method":"a"}`, "Idempotency-Key: a b", 400, codeKeyInvalid,
			"header:Idempotency-Key"},
		{"bad wait", "POST", calls, `{"method":"a"}`, "Prefer: respond-async, wait=soon", 400, codeParameter,
			"header:Prefer"},
		{"session id that cannot be", "POST", "/v1/sessions/..%2f..%2fetc/calls", `{"method":"a"}`, "", 404,
			codeNotFound, ""},
		{"session without role", "POST", "/v1/sessions", `{}`, "", 422, codeInvalid, "/role"},
		{"session of a bad role", "POST", "/v1/sessions", `{"role":"a\\b"}`, "", 422, codeInvalid, "/role"},
		{"session with a list as context", "POST", "/v1/sessions", `{"role":"a","context":[1]}`, "", 422, codeInvalid,
			"/context"},
		{"metadata of numbers", "POST", "/v1/sessions", `{"role":"a","metadata":{"x":1}}`, "", 422, codeInvalid,
			"/metadata/x"},
		{"context patch of a string", "PATCH", "/v1/sessions/" + knownSession + "/context", `"x"`, "", 422, codeInvalid,
			""},
		{"policy patch of nothing", "PATCH", "/v1/policy", `nonsense`, "", 400, codeMalformed, ""},
		{"role with escaped slash", "GET", tool + "a%2Fb", "", "", 422, codeName, "path:role"},
		{"role of escaped dots", "GET", tool + "%2e%2e/methods/x", "", "", 422, codeName, "path:role"},
		{"role with NUL", "PUT", tool + "a%00", `{}`, "", 422, codeName, "path:role"},
		{"role with CR LF", "PUT", tool + "a%0d%0a", `{}`, "", 422, codeName, "path:role"},
		{"role of invalid UTF-8", "PUT", tool + "a%ff", `{}`, "", 422, codeName, "path:role"},
		{"method with backslash", "GET", tool + "a/methods/b%5Cc", "", "", 422, codeName, "path:method"},
		{"tool with unknown field", "PUT", tool + "a", `{"role":"a"}`, "", 422, codeInvalid, "/role"},
		{"tool with bad method", "PUT", tool + "a", `{"methods":{"a/b":{}}}`, "", 422, codeInvalid, "/methods/a~1b"},
		{"If-Match of another form", "PUT", tool + "a", `{}`, `If-Match: W/"x"`, 400, codeParameter, "header:If-Match"},
		{"program without code", "PUT", tool + "a/methods/b", `{"reason":"x"}`, "", 422, codeInvalid, "/code"},
		{"operation with unknown field", "POST", tool + "a/methods/b/pin", `{"force":true}`, "", 422, codeInvalid,
			"/force"},
		{"unknown operation", "POST", tool + "a/methods/b/explode", `{}`, "", 404, codeNoRoute, ""},
		{"prune without days", "POST", "/v1/maintenance/prune", `{}`, "", 422, codeInvalid, "/stale_days"},
		{"prune of negative days", "POST", "/v1/maintenance/prune", `{"stale_days":-1}`, "", 422, codeInvalid,
			"/stale_days"},
		{"prune by fire", "POST", "/v1/maintenance/prune", `{"stale_days":1,"mode":"burn"}`, "", 422, codeInvalid,
			"/mode"},
		{"limit 0", "GET", "/v1/tools?limit=0", "", "", 400, codeParameter, "query:limit"},
		{"limit 1001", "GET", "/v1/tools?limit=1001", "", "", 400, codeParameter, "query:limit"},
		{"limit of words", "GET", "/v1/calls?limit=all", "", "", 400, codeParameter, "query:limit"},
		{"limit twice", "GET", "/v1/calls?limit=1&limit=2", "", "", 400, codeParameter, "query:limit"},
		{"unknown parameter", "GET", "/v1/calls?page=2", "", "", 400, codeParameter, "query:page"},
		{"unknown status", "GET", "/v1/calls?status=good", "", "", 400, codeParameter, "query:status"},
		{"time of words", "GET", "/v1/calls?since=yesterday", "", "", 400, codeParameter, "query:since"},
		{"order of words", "GET", "/v1/sessions/" + knownSession + "/history?order=up", "", "", 400, codeParameter,
			"query:order"},
		{"cursor of words", "GET", "/v1/sessions/" + knownSession + "/history?after=x", "", "", 400, codeParameter,
			"query:after"},
		{"broken escape in the query", "GET", "/v1/calls?role=%zz", "", "", 400, codeParameter, "query:"},
		{"no such path", "GET", "/v1/nothing", "", "", 404, codeNoRoute, ""},
		{"trailing slash", "GET", "/v1/sessions/", "", "", 404, codeNoRoute, ""},
		{"no such method", "DELETE", "/v1/policy", "", "", 405, codeMethod, ""},
		{"strange method", "BREW", "/v1/policy", "", "", 405, codeMethod, ""},
		{"unknown problem", "GET", "/problems/none", "", "", 404, codeNotFound, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, nil)
			var header []string
			if c.header != "" {
				header = []string{c.header}
			}
			got := g.ask(c.method, c.path, c.body, header...)
			p := got.json(t)
			if got.status != c.status || p["code"] != c.code {
				t.Fatalf("%d %v, want %d %s: %s", got.status, p["code"], c.status, c.code, got.body)
			}
			if p["hint"] == "" || p["detail"] == "" || p["type"] != "/problems/"+c.code ||
				p["request_id"] != got.header.Get("X-Request-Id") {
				t.Errorf("not a whole problem: %s", got.body)
			}
			if c.pointer != "" && !strings.Contains(string(got.body), `"pointer":`+string(mustJSON(t, c.pointer))) {
				t.Errorf("no error at %s: %s", c.pointer, got.body)
			}
			if len(g.fake.asked) != 0 {
				t.Errorf("the runtime was asked for %v", g.fake.asked)
			}
		})
	}
}

// Bodies without a length, or with a wrong one, are bounded too.
func TestBodiesOnTheWire(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	head := "POST /v1/sessions/" + knownSession +
		"/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
	chunk := strings.Repeat("x", 1<<20)
	flood := head + "Transfer-Encoding: chunked\r\n\r\n"
	for range 5 {
		flood += fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk)
	}
	for name, c := range map[string]struct {
		sent string
		want string
	}{
		"chunks over the limit": {flood + "0\r\n\r\n", " 413 "},
		"chunks": {head +
			"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"met\r\nc\r\nhod\": \"add\"}\r\n0\r\n\r\n", " 200 "},
		"a claim too large": {head + "Content-Length: 99999999999\r\n\r\n{", " 413 "},
		"less than claimed": {head + "Content-Length: 100\r\n\r\n{\"method\":\"add\"}", " 400 "},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { // the daemon may answer before it has read everything
			_, _ = io.WriteString(conn, c.sent)
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		line, err := bufio.NewReader(conn).ReadString('\n')
		_ = conn.Close()
		if err != nil || !strings.Contains(line, c.want) {
			t.Errorf("%s: %q, %v; want%s", name, line, err, c.want)
		}
	}
}

func TestAllErrorsOfABodyAreReported(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	got := g.ask("POST", "/v1/sessions", `{"role":5,"debug":"yes","extra":1,"metadata":[]}`)
	errs, _ := got.json(t)["errors"].([]any)
	if len(errs) != 4 {
		t.Errorf("%d errors, want 4: %s", len(errs), got.body)
	}
}

// A problem is short, even if it quotes long names from the body.
func TestProblemsAreShort(t *testing.T) {
	g := newRig(t, nil)
	long := strings.Repeat("\u00e9", 1<<20)
	for _, body := range []string{`{"role":"r","` + long + `":1}`,
		`{"role":"r","metadata":{"` + long + `":{"a":1,"a":1}}}`, `{"role":"` + long + `"}`} {
		got := g.ask("POST", "/v1/sessions", body)
		if code := got.json(t)["code"]; got.status < 400 || got.status >= 500 || code == nil {
			t.Errorf("status %d, code %v", got.status, code)
		}
		if len(got.body) > 5*maxText {
			t.Errorf("a problem of %d bytes: %.100s", len(got.body), got.body)
		}
	}
}

// maxText is the longest text of a problem, in bytes.
const maxText = 8 << 10

// Errors of the runtime and the store map to codes. The text of an unlisted error does not reach the client.
func TestErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
		retry  bool
	}{
		{store.ErrNotFound, 404, codeNotFound, false},
		{fmt.Errorf("session: %w", store.ErrGone), 410, codeGone, false},
		{store.ErrExists, 409, codeExists, false},
		{store.ErrConflict, 409, codeConflict, false},
		{fmt.Errorf("journal: %w", store.ErrReadOnly), 503, codeReadOnly, true},
		{runtime.ErrDraining, 503, codeDraining, true},
		{interrupt.ErrShutdown, 503, codeDraining, true},
		{turns.ErrFull, 429, codeQueueFull, true},
		{runtime.ErrKeyReused, 422, codeKeyReused, false},
		{runtime.ErrKeyInUse, 409, codeKeyInUse, true},
		{&agent.NameError{Field: "role", Reason: "must not be empty"}, 422, codeName, false},
		{&agent.PolicyError{Field: "/degraded/rate", Reason: "must be 0 to 1"}, 422, codePolicy, false},
		{&agent.InputError{Code: "invalid_contract", Pointer: "/contract/deliverable", Detail: "x", Hint: "y"}, 422,
			codeContract, false},
		{&agent.InputError{Code: "too_large", Pointer: "/context", Detail: "x"}, 413, codeTooLarge, false},
		{&agent.InputError{Code: "invalid_history_element", Detail: "x",
			Meta: map[string]any{"index": 2, "reason": "not_an_object", "code": "forged"}}, 422, codeHistoryElement,
			false},
		{&agent.InputError{Code: "never heard of", Detail: "x"}, 422, codeInvalid, false},
		{errors.New("open /var/secret: permission denied"), 500, codeInternal, false},
	} {
		g := newRig(t, nil)
		g.fake.err = c.err
		got := g.ask("POST", "/v1/sessions/"+knownSession+"/calls", `{"method":"a"}`)
		p := got.json(t)
		if got.status != c.status || p["code"] != c.code || (got.header.Get("Retry-After") != "") != c.retry {
			t.Errorf("%v: %d %v, Retry-After %q; want %d %s", c.err, got.status, p["code"],
				got.header.Get("Retry-After"), c.status, c.code)
		}
		if strings.Contains(string(got.body), "secret") {
			t.Errorf("the text of an inner error leaks: %s", got.body)
		}
		if c.code == codeHistoryElement && (p["index"] != 2.0 || p["reason"] != "not_an_object") {
			t.Errorf("members of the input error are missing: %s", got.body)
		}
	}
}

func TestPanicIsA500(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	g.fake.panics = true
	got := g.ask("GET", "/v1/tools", "")
	if got.status != 500 || strings.Contains(string(got.body), "secret") {
		t.Errorf("%d %s", got.status, got.body)
	}
	g.fake.panics = false
	if got := g.ask("GET", "/v1/tools", ""); got.status != 200 {
		t.Errorf("after a panic: %d", got.status)
	}
}

func TestUnknownThingsAre404(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, c := range [][3]string{
		{"GET", "/v1/sessions/sess_none", ""}, {"DELETE", "/v1/sessions/sess_none", ""},
		{"POST", "/v1/sessions/sess_none/calls", `{"method":"a"}`},
		{"GET", "/v1/sessions/sess_none/history", ""}, {"PATCH", "/v1/sessions/sess_none/context", "{}"},
		{"GET", "/v1/calls/call_none", ""},
		{"POST", "/v1/calls/call_none/cancel", ""}, {"POST", "/v1/calls/call_none/replay", ""},
		{"GET", "/v1/tools/none", ""}, {"DELETE", "/v1/tools/none", ""}, {"GET", "/v1/tools/none/methods/x", ""},
		{"POST", "/v1/tools/none/methods/x/pin", ""}, {"POST", "/v1/maintenance/restore", `{"role":"none"}`},
	} {
		if got := g.ask(c[0], c[1], c[2]); got.status != 404 || got.json(t)["code"] != codeNotFound {
			t.Errorf("%s %s = %d %s", c[0], c[1], got.status, got.body)
		}
	}
}

// The runtime receives requests unchanged.
func TestCallReachesTheRuntime(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	big := strings.Repeat("x", 1<<20)
	got := g.ask("POST", "/v1/sessions/"+knownSession+"/calls",
		` {"method":"find \u00e4","args":[9007199254740993, "\ud800", {"a" : [1]}],"kwargs":{"big":"`+big+
			`"},"role":"movie finder","contract":{"purpose":"p","deliverable":true},"history":{"messages":[]},"timeout_ms":5e3} `,
		"Idempotency-Key: \"abc\"", "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"X-Request-Id: mine-1")
	q := g.fake.call
	if got.status != 200 || got.header.Get("X-Request-Id") != "mine-1" || got.header.Get("Recurgent-Outcome") != "ok" {
		t.Fatalf("%d %v %.300s", got.status, got.header, got.body)
	}
	want := []json.RawMessage{json.RawMessage("9007199254740993"), json.RawMessage(`"\ufffd"`),
		json.RawMessage(`{"a" : [1]}`)}
	if q.Method != "find ä" || q.Role != "movie finder" || !reflect.DeepEqual(q.Args, want) || len(q.Kwargs) < 1<<20 ||
		q.Timeout != 5*time.Second {
		t.Errorf("method %q, role %q, args %s, %d bytes of kwargs, timeout %v", q.Method, q.Role, q.Args, len(q.Kwargs),
			q.Timeout)
	}
	if q.Contract == nil || q.Contract.Purpose != "p" || string(q.Contract.Deliverable) != "true" ||
		string(q.History) != `{"messages":[]}` {
		t.Errorf("contract %+v, history %s", q.Contract, q.History)
	}
	if q.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" || q.Owner != "local" ||
		q.IdempotencyKey != "local\n"+knownSession+"\nabc" || len(q.BodyHash) != 64 {
		t.Errorf("trace %q, owner %q, key %q, hash %q", q.TraceID, q.Owner, q.IdempotencyKey, q.BodyHash)
	}
}

func TestAbsentArgumentsAreAbsent(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"method":"a"}`,
		`{"method":"a","args":null,"kwargs":null,"role":null,"contract":null,"history":null,"timeout_ms":null}`} {
		g := newRig(t, nil)
		g.ask("POST", "/v1/sessions/"+knownSession+"/calls", body)
		if q := g.fake.call; q.Method != "a" || q.Args != nil || q.Kwargs != nil || q.Contract != nil ||
			q.History != nil || q.Timeout != 0 || q.BodyHash != "" {
			t.Errorf("%s gave %+v", body, q)
		}
	}
}

func TestReplayedReplyIsByteEqual(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	body := append(mustJSON(t, reply1("calculator", "add")), ' ')
	g.fake.result = runtime.CallResult{Body: body, CallID: knownCall, Replayed: true}
	r, err := g.client.Post(g.url+"/v1/sessions/"+knownSession+"/calls", "application/json",
		strings.NewReader(`{"method":"add"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	got := make([]byte, len(body)+10)
	n, _ := r.Body.Read(got)
	if string(got[:n]) != string(body)+"\n" || r.Header.Get("Idempotent-Replayed") != "true" ||
		r.Header.Get("Recurgent-Outcome") != "error" {
		t.Errorf("got %q, %v", got[:n], r.Header)
	}
}

func TestRespondAsync(t *testing.T) {
	t.Parallel()
	calls := "/v1/sessions/" + knownSession + "/calls"
	g := newRig(t, nil)
	got := g.ask("POST", calls, `{"method":"add"}`, "Prefer: respond-async")
	if got.status != 202 || got.header.Get("Location") != "/v1/calls/"+knownCall ||
		got.header.Get("Preference-Applied") != "respond-async" || got.json(t)["status"] != "running" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	close(g.fake.done) // releases what the first call holds of its owner's shares
	g.fake.done = make(chan runtime.CallResult, 1)
	g.fake.done <- runtime.CallResult{Body: mustJSON(t, reply1("calculator", "add")), OK: true}
	if got := g.ask("POST", calls, `{"method":"add"}`,
		"Prefer: respond-async, wait=60"); got.status != 200 || got.json(t)["call_id"] != knownCall {
		t.Errorf("a call that ends in time: %d %s", got.status, got.body)
	}
	close(g.fake.done)
	if got := g.ask("POST", calls, `{"method":"add"}`, `Prefer: RESPOND-ASYNC; foo, wait="60"`); got.status != 500 {
		t.Errorf("a call without a result: %d %s", got.status, got.body)
	}
	g.fake.done = make(chan runtime.CallResult, 1)
	g.fake.done <- runtime.CallResult{Err: fmt.Errorf("the disk: %w", store.ErrReadOnly)}
	if got := g.ask("POST", calls, `{"method":"add"}`,
		"Prefer: respond-async, wait=60"); got.status != 503 || got.json(t)["code"] != "read_only" {
		t.Errorf("a call that could not be kept: %d %s", got.status, got.body)
	}
	if got := g.ask("POST", calls, `{"method":"add"}`,
		"Prefer: wait=1, return=minimal"); got.status != 200 || !slices.Contains(g.fake.asked, "Call") {
		t.Errorf("without respond-async: %d, asked %v", got.status, g.fake.asked)
	}
}

// Without a wait the reply is 202, however quick the call is. A call that the idempotency key stands for counts as
// finished.
func TestRespondAsyncAtOnce(t *testing.T) {
	t.Parallel()
	calls := "/v1/sessions/" + knownSession + "/calls"
	g := newRig(t, nil)
	for range 20 {
		for _, replayed := range []bool{false, true} {
			g.fake.done = make(chan runtime.CallResult, 1)
			g.fake.done <- runtime.CallResult{Body: mustJSON(t, reply1("calculator", "add")), OK: true,
				Replayed: replayed}
			close(g.fake.done)
			want := map[bool]int{false: 202, true: 200}[replayed]
			if got := g.ask("POST", calls, `{"method":"add"}`,
				"Prefer: respond-async"); got.status != want || got.json(t)["call_id"] != knownCall {
				t.Fatalf("replayed %t: %d %s, want %d", replayed, got.status, got.body, want)
			}
		}
	}
}

func TestHistoryPages(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	path := "/v1/sessions/" + knownSession + "/history"
	got := g.ask("GET", path+"?limit=7&order=desc&method=m&status=error&role=r&since=2026-11-21T02:10:00Z", "")
	want := store.HistoryQuery{Limit: 7, Scan: maxScanned, Bytes: maxPage, Desc: true, Method: "m", Status: "error",
		Role: "r", Since: at}
	if !reflect.DeepEqual(g.fake.history, want) {
		t.Errorf("asked for %+v, want %+v", g.fake.history, want)
	}
	first := got.json(t)
	if first["next_cursor"] != "1" || first["size"] != 2.0 || len(first["data"].([]any)) != 1 {
		t.Errorf("first page: %s", got.body)
	}
	last := g.ask("GET", path+"?after=1", "").json(t)
	if last["next_cursor"] != nil || fmt.Sprint(last["data"]) != "[]" || g.fake.history.After != 1 ||
		g.fake.history.Limit != 100 {
		t.Errorf("last page: %v, asked for %+v", last, g.fake.history)
	}
}

// An export is JSON Lines, and every line matches the document.
func TestHistoryExport(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	got := g.ask("GET", "/v1/sessions/"+knownSession+"/history?method=m", "",
		"Accept: text/html, application/jsonl;q=0.9")
	if got.header.Get("Content-Type") != "application/jsonl" || strings.Count(string(got.body), knownCall) != 1 ||
		g.fake.history.Method != "m" {
		t.Errorf("%d %v %s, asked for %+v", got.status, got.header, got.body, g.fake.history)
	}
}

func TestListsPage(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for i := range 3 {
		g.fake.entries = append(g.fake.entries, logEntry(fmt.Sprintf("call_%d", 9-i)))
	}
	for _, c := range []struct {
		path   string
		n      int
		cursor any
	}{
		{"/v1/calls?limit=2", 2, "call_8"}, {"/v1/calls?limit=3", 3, nil}, {"/v1/sessions?limit=1", 1, knownSession},
		{"/v1/sessions", 2, nil},
		{"/v1/tools/calculator/methods?limit=1", 1, "add"}, {"/v1/tools/calculator/methods?after=add", 1, nil},
		{"/v1/tools/calculator/methods?after=mul", 0, nil},
	} {
		l := g.ask("GET", c.path, "").json(t)
		if data, _ := l["data"].([]any); len(data) != c.n || l["next_cursor"] != c.cursor {
			t.Errorf("%s: %d entries, cursor %v; want %d, %v", c.path, len(data), l["next_cursor"], c.n, c.cursor)
		}
	}
	// a text that no page can have returned as cursor is refused
	for _, path := range []string{"/v1/calls?after=zzz", "/v1/calls?after=sess_1", "/v1/calls?after=call_%00",
		"/v1/sessions?after=call_1", "/v1/sessions?after=../x", "/v1/maintenance/audit?after=7"} {
		if got := g.ask("GET", path, ""); got.status != 400 || got.json(t)["code"] != codeParameter {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	yes := true
	g.ask("GET", "/v1/calls?weak_success=true&after=call_9&role=r&source=persisted&error_type=timeout&session_id=s", "")
	want := store.CallQuery{Before: "call_9", Limit: 101, Role: "r", Source: "persisted", ErrorType: "timeout",
		SessionID: "s", WeakSuccess: &yes, Scan: g.fake.calls.Scan}
	if !reflect.DeepEqual(g.fake.calls, want) {
		t.Errorf("asked for %+v, want %+v", g.fake.calls, want)
	}
}

func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	v := g.ask("GET", "/v1/calls/"+knownCall, "").json(t)
	for _, name := range []string{"args", "kwargs", "attempt_failures", "history_query_patterns", "capability_patterns",
		"weak_success_reasons"} {
		if v[name] == nil {
			t.Errorf("%s is null", name)
		}
	}
	if c := g.ask("GET", "/v1/sessions/"+knownSession+"/context", ""); string(c.body) != "{}" {
		t.Errorf("an empty context is %s", c.body)
	}
}

func TestArtifactsKeepFixturesPrivate(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, path := range []string{"/v1/tools/calculator/methods/add", "/v1/tools/calculator/methods/add/generations"} {
		got := g.ask("GET", path, "")
		if strings.Contains(string(got.body), "a private value") ||
			!strings.Contains(string(got.body), `"fixture_count":1`) ||
			!strings.Contains(string(got.body), "package tool") {
			t.Errorf("%s: %s", path, got.body)
		}
	}
}

// An entry that an earlier version stored under a name that is not normalized can be read under that name.
func TestEarlierNames(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	got := g.ask("GET", "/v1/tools/cafe%CC%81", "")
	if got.status != 200 || got.json(t)["role"] != earlierRole || len(g.fake.asked) != 2 {
		t.Errorf("%d %s, asked for %v", got.status, got.body, g.fake.asked)
	}
	if got := g.ask("GET", "/v1/tools/caf%C3%A9", ""); got.status != 404 {
		t.Errorf("in the form of names: %d %s", got.status, got.body)
	}
	if got := g.ask("PUT", "/v1/tools/cafe%CC%81",
		`{"purpose":"x"}`); got.status != 200 || !strings.Contains(string(got.body), "caf\u00e9") {
		t.Errorf("put: %d %s", got.status, got.body)
	}
}

func TestRevisions(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	if got := g.ask("GET", "/v1/tools/calculator", ""); got.header.Get("ETag") != `"7"` {
		t.Errorf("ETag %q", got.header.Get("ETag"))
	}
	for _, c := range []struct {
		header string
		want   int64
		status int
	}{{"X: y", store.AnyRevision, 200}, {`If-Match: "7"`, 7, 200}, {"If-Match: *", store.AnyRevision, 200},
		{"If-None-Match: *", 0, 201}} {
		got := g.ask("PUT", "/v1/tools/calculator", `{"purpose":"x"}`, c.header)
		if g.fake.wanted != c.want || got.status != c.status {
			t.Errorf("%s: revision %d, status %d; want %d, %d", c.header, g.fake.wanted, got.status, c.want, c.status)
		}
	}
	// RFC 9110: "If-Match: *" needs an existing resource
	for _, headers := range [][]string{{"If-Match: *"}, {`If-Match: "1"`, `If-Match: "2"`},
		{"If-None-Match: *", "If-None-Match: *"}} {
		g.fake.wanted = 99
		if got := g.ask("PUT", "/v1/tools/nobody", `{}`,
			headers...); got.status != 412 && got.status != 400 || g.fake.wanted != 99 {
			t.Errorf("%q: status %d, revision %d", headers, got.status, g.fake.wanted)
		}
	}
	g.fake.err = store.ErrConflict
	if got := g.ask("PUT", "/v1/tools/calculator", `{}`, `If-Match: "7"`); got.status != 412 {
		t.Errorf("a revision that does not match: %d", got.status)
	}
	if got := g.ask("PUT", "/v1/tools/calculator", `{}`); got.status != 409 {
		t.Errorf("a race: %d", got.status)
	}
}

func TestOperatorsActsReachTheRuntime(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	g.ask("POST", "/v1/tools/calculator/methods/add/promote",
		`{"reason":"good","reset_metrics":true,"generation":"gen-2"}`)
	want := operator.Operation{Action: "promote", Reason: "good", Actor: "local", Generation: "gen-2",
		ResetMetrics: true}
	if g.fake.operation != want {
		t.Errorf("got %+v, want %+v", g.fake.operation, want)
	}
	g.ask("POST", "/v1/maintenance/prune", `{"stale_days":90}`) // a dry run by default
	if w := (operator.PruneRequest{StaleDays: 90, Mode: "archive", DryRun: true, Actor: "local"}); g.fake.pruned != w {
		t.Errorf("got %+v, want %+v", g.fake.pruned, w)
	}
}

func TestNamesInPaths(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for escaped, name := range map[string]string{"movie%20finder": "movie finder", "a%25b": "a%b", "what%3F": "what?",
		"%C3%A4": "ä", "a+b": "a+b", "x%3D": "x=", "a;b": "a;b", "%2541": "%41"} {
		g.ask("PUT", "/v1/tools/"+escaped, `{}`)
		if g.fake.put.Role != name {
			t.Errorf("%s reached the runtime as %q, want %q", escaped, g.fake.put.Role, name)
		}
	}
}

// Without tokens only names of this machine are answered, against DNS rebinding.
func TestHosts(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *Options) { o.Hosts = []string{"box.lan"} })
	for host, status := range map[string]int{
		"localhost": 200, "LOCALHOST:1": 200, "localhost.": 200, "127.0.0.1:8420": 200, "127.9.9.9": 200,
		"[::1]:8420": 200, "[::1]": 200, "box.lan:8420": 200,
		"evil.example": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example:8420": 421, "10.0.0.1": 421,
		"0.0.0.0": 421, "[::]": 421, "2130706433": 421,
	} {
		if got := g.ask("GET", "/v1/version", "", "Host: "+host); got.status != status {
			t.Errorf("Host %s: %d, want %d", host, got.status, status)
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for header, status := range map[string]int{"Sec-Fetch-Site: cross-site": 403, "Origin: https://evil.example": 403,
		"Sec-Fetch-Site: same-origin": 201, "X: y": 201} {
		if got := g.ask("POST", "/v1/sessions", `{"role":"a"}`, header); got.status != status {
			t.Errorf("%s: %d, want %d", header, got.status, status)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *Options) {
		o.Auth = access.NewTokens(access.NewToken(access.Principal{Name: "alice", Scopes: access.All}, "rgd_one"),
			access.NewToken(access.Principal{Name: "bob", Scopes: access.All}, "rgd_two"))
	})
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v1/version", "X: y", 401}, {"/v1/version", "Authorization: Bearer wrong", 401},
		{"/v1/version", "Authorization: Basic rgd_one", 401},
		{"/v1/version", "Authorization: Bearer rgd_one", 200}, {"/v1/version", "Authorization: bearer rgd_two", 200},
		{"/metrics", "X: y", 401},
		{"/healthz", "X: y", 200}, {"/readyz", "X: y", 200}, {"/openapi.yaml", "X: y", 200},
		{"/problems/unauthenticated", "X: y", 200}, {"/v1/nothing", "X: y", 404},
	} {
		got := g.ask("GET", c.path, "", c.header, "Host: agents.example")
		if got.status != c.status || (c.status == 401) != (got.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s with %s: %d, want %d", c.path, c.header, got.status, c.status)
		}
	}
	g.ask("POST", "/v1/sessions", `{"role":"a"}`, "Authorization: Bearer rgd_two")
	if g.fake.session.Owner != "bob" {
		t.Errorf("owner %q, want bob", g.fake.session.Owner)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for err, code := range map[error]string{runtime.ErrDraining: codeDraining,
		fmt.Errorf("x: %w", store.ErrReadOnly): codeReadOnly, errors.New("replaying /secret"): codeNotReady} {
		g.fake.ready = err
		got := g.ask("GET", "/readyz", "")
		if got.status != 503 || got.json(t)["code"] != code || strings.Contains(string(got.body), "secret") {
			t.Errorf("%v: %d %s", err, got.status, got.body)
		}
		if alive := g.ask("GET", "/healthz", ""); alive.status != 200 {
			t.Errorf("healthz = %d while not ready", alive.status)
		}
	}
}

// A reply waits until the state that it shows is durable. A call's own reply has waited for its own commit.
func TestUndurableIsNotShown(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	g.fake.unsettled = fmt.Errorf("x: %w", store.ErrReadOnly)
	session := "/v1/sessions/" + knownSession
	for _, path := range []string{session, session + "/context", session + "/history", "/v1/sessions", "/v1/calls",
		"/v1/calls/" + knownCall, "/v1/tools"} {
		if got := g.ask("GET", path, ""); got.status != 503 || got.json(t)["code"] != codeReadOnly {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/v1/version"} {
		if got := g.ask("GET", path, ""); got.status != 200 {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
	}
	if got := g.ask("POST", session+"/calls", `{"method": "add"}`); got.status != 200 {
		t.Errorf("a call: %d %s", got.status, got.body)
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for given, kept := range map[string]bool{"abc-1.2_Z": true, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "a b": false, "ä": false} {
		if got := g.ask("GET", "/healthz", "", "X-Request-Id: "+
			given).header.Get("X-Request-Id"); (got == given) != kept || got == "" {
			t.Errorf("%.20q was answered with %.20q", given, got)
		}
	}
	if a, b := g.ask("GET", "/healthz", "").header.Get("X-Request-Id"),
		g.ask("GET", "/healthz", "").header.Get("X-Request-Id"); a == b {
		t.Errorf("two requests have the id %s", a)
	}
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	const good = "4bf92f3577b34da6a3ce929d0e0e4736"
	for header, want := range map[string]string{
		"00-" + good + "-00f067aa0ba902b7-01":                     good,
		"01-" + good + "-00f067aa0ba902b7-01-more":                good,
		"00-" + good + "-00f067aa0ba902b7-01-more":                "",
		"ff-" + good + "-00f067aa0ba902b7-01":                     "",
		"00-" + strings.ToUpper(good) + "-00f067aa0ba902b7-01":    "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-" + good + "-0000000000000000-01":                     "",
		"00-" + good:                                              "",
		"":                                                        "",
		"00-" + good + "-00f067aa0ba902b7_01":                     "",
	} {
		r := &http.Request{Header: http.Header{"Traceparent": {header}}}
		if got := traceID(r); got != want {
			t.Errorf("traceparent %q gives %q, want %q", header, got, want)
		}
	}
}

func TestAllowIsSent(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	if got := g.ask("PUT", "/v1/sessions/x%2fy", "{}"); got.status != 405 ||
		got.header.Get("Allow") != "DELETE, GET, HEAD" {
		t.Errorf("%d, Allow %q", got.status, got.header.Get("Allow"))
	}
}

// RFC 9110, 9.3.2: HEAD answers as GET does, without the body. An operation without GET has no HEAD. Streams do not
// begin.
func TestHead(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, c := range []struct {
		path   string
		status int
	}{
		{"/healthz", 200}, {"/openapi.yaml", 200}, {"/metrics", 200}, {"/v1/policy", 200},
		{"/v1/tools/calculator/methods/add", 200},
		{"/v1/sessions/" + knownSession, 200}, {"/v1/sessions/sess_none", 404}, {"/v1/calls?limit=0", 400},
		{"/nowhere", 404},
		{"/v1/events", 200}, {"/v1/calls/" + knownCall + "/events", 200}, {"/v1/calls/call_nobody/events", 404},
		{"/v1/maintenance/export", 200}, {"/v1/maintenance/prune", 405}, {"/v1/predict", 405},
	} {
		got := g.ask("HEAD", c.path, "")
		if got.status != c.status || len(got.body) > 0 {
			t.Errorf("HEAD %s = %d with %d bytes, want %d with none", c.path, got.status, len(got.body), c.status)
		}
		if c.status >= 400 || strings.HasSuffix(c.path, "/events") || strings.HasSuffix(c.path, "/export") ||
			c.path == "/metrics" {
			continue // no GET, a stream, or a different reply each time
		}
		want := g.ask("GET", c.path, "")
		for _, name := range []string{"Content-Type", "Content-Length", "ETag", "Cache-Control"} {
			if got.header.Get(name) != want.header.Get(name) {
				t.Errorf("HEAD %s: %s is %q, GET has %q", c.path, name, got.header.Get(name), want.header.Get(name))
			}
		}
	}
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	g.ask("GET", "/v1/sessions/"+knownSession, "")
	g.ask("GET", "/v1/sessions/sess_none", "")
	g.ask("GET", "/anything/else", "")
	text := string(g.ask("GET", "/metrics", "").body)
	for _, want := range []string{
		`recurgent_http_requests_total{code="2xx",method="GET",route="/v1/sessions/{id}"} 1`,
		`recurgent_http_requests_total{code="4xx",method="GET",route="/v1/sessions/{id}"} 1`,
		`recurgent_http_requests_total{code="4xx",method="other",route="unmatched"} 1`,
		`recurgent_http_problems_total{problem="not_found"} 1`,
		`recurgent_http_problems_total{problem="queue_full"} 0`,
		`recurgent_http_requests_in_flight 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if strings.Contains(text, knownSession) || strings.Contains(text, "anything") {
		t.Error("a path is in the metrics")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err == nil {
		t.Error("New without a runtime works")
	}
	o := DefaultOptions()
	if o.MaxBody != 4<<20 {
		t.Errorf("MaxBody %d", o.MaxBody)
	}
}

// Every body gets a reply that the document describes, never an internal error.
func FuzzCallBody(f *testing.F) {
	f.Add([]byte(`{"method":"add","args":[2,3],"kwargs":{},"role":null,"contract":{"purpose":"x"},"history":null,"timeout_ms":5}`))
	f.Add([]byte(`{"method":"\ud800","args":[{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var q runtime.CallRequest
		err := decodeCall(body, &q)
		if err != nil {
			if p := problemOf(err); p.Status >= 500 || p.Hint == "" {
				t.Errorf("%q: %v", body, p)
			}
			return
		}
		if agent.CheckName("method", q.Method) != nil {
			t.Errorf("%q: method %q", body, q.Method)
		}
		for _, a := range q.Args {
			if !json.Valid(a) {
				t.Errorf("%q: argument %q", body, a)
			}
		}
		if q.Kwargs != nil && agent.Kind(q.Kwargs) != "object" {
			t.Errorf("%q: kwargs %q", body, q.Kwargs)
		}
	})
}

func BenchmarkDecodeCall(b *testing.B) {
	body := []byte(`{"method": "wc", "args": ["the quick brown fox jumps over the lazy dog the end."], "kwargs": {}}`)
	b.ReportAllocs()
	for b.Loop() {
		var q runtime.CallRequest
		if err := decodeCall(body, &q); err != nil {
			b.Fatal(err)
		}
	}
}

// The cost of a warm call in the HTTP interface, without the network.
func BenchmarkPostCall(b *testing.B) {
	g := newRig(b, nil)
	g.fake.result = runtime.CallResult{Body: mustJSON(b, reply1("calculator", "add")), OK: true}
	h, err := New(func() Options {
		o := DefaultOptions()
		reg := telemetry.NewRegistry()
		o.Namespaces, o.Registry, o.Metrics, o.OpenAPI = only(b, quiet{g.fake}), reg,
			telemetry.New(reg, telemetry.Build{}), document.OpenAPI
		return o
	}())
	if err != nil {
		b.Fatal(err)
	}
	body := `{"method": "wc", "args": ["the quick brown fox jumps over the lazy dog the end."], "kwargs": {}}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/sessions/"+knownSession+"/calls",
			strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}

// quiet is a fake whose calls record nothing.
type quiet struct{ *fake }

func (q quiet) Call(context.Context, runtime.CallRequest) (runtime.CallResult, error) {
	return q.fake.result, nil
}
