package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// hers is what of ann must not reach ben: what she said, and the ids of what is hers.
type hers struct {
	canaries []string
	traceID  string
	parent   string // a call that made another one
}

// live has ann do everything that leaves something behind under her name.
func live(s *side) hers {
	h := hers{traceID: strings.Repeat("5a", 16)}
	// each call that fails asks for a program
	s.do("PATCH", "/v1/policy", map[string]any{"backoff": map[string]any{"base_seconds": 0}})
	s.do("PUT", "/v1/tools/{clerk}/methods/refuse",
		map[string]any{"code": rig.Program(
			"\twho, _ := call.Arg(0, \"who\").(string)\n\treturn nil, recurgent.Fail(\"not_today\", \"closed for \"+who)")})
	s.do("PUT", "/v1/tools/{clerk}/methods/crash", map[string]any{"code": rig.Program("\tpanic(call.Arg(0, \"who\"))")})
	s.do("PUT", "/v1/tools/{clerk}/methods/read",
		map[string]any{"code": rig.Program(
			"\tin, err := call.Open(call.Arg(0, \"file\"))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tb, err := io.ReadAll(in)\n\treturn string(b), err", "io")})
	s.do("PUT", "/v1/tools/{clerk}/methods/ask",
		map[string]any{"code": rig.Program("\to := call.Tool(\"" + s.ids["clerk"] +
			"\").Call(\"greet\", call.Arg(0, \"who\"))\n\treturn o.Value, nil")})
	s.do("PUT", "/v1/tools/{clerk}/methods/recall",
		map[string]any{"code": rig.Program("\treturn len(call.History()), nil")})
	s.do("PATCH", "/v1/sessions/{session}/context", map[string]any{"patched": s.canary})
	for _, method := range []string{"refuse", "crash", "ask", "greet", "greet", "recall"} {
		got := s.w.send(s.t, "POST", s.fill("/v1/sessions/{session}/calls"),
			`{"method": "`+method+`", "args": ["`+s.canary+`"]}`, s.token,
			map[string]string{"Traceparent": "00-" + h.traceID + "-00f067aa0ba902b7-01",
				"Idempotency-Key": "key-" + method})
		var reply struct {
			CallID string `json:"call_id"`
		}
		if json.Unmarshal(got.body, &reply) != nil || reply.CallID == "" {
			s.t.Fatalf("%s: %d %s", method, got.status, got.body)
		}
		h.canaries = append(h.canaries, reply.CallID)
		if method == "ask" {
			h.parent = reply.CallID
		}
	}
	s.do("POST", "/v1/calls/"+h.canaries[0]+"/verdict", map[string]any{"verdict": "wrong",
		"expected_error_type": "closed", "note": "note " + s.canary})
	s.do("POST", "/v1/sessions/{session}/calls", map[string]any{"method": "read",
		"args": []any{map[string]any{"$file": s.ids["file"]}}})
	s.do("POST", "/v1/predict", map[string]any{"session_id": s.ids["session"],
		"signature": map[string]any{"inputs": []any{map[string]any{"name": "q"}},
			"outputs": []any{map[string]any{"name": "a"}}}, "inputs": map[string]any{"q": s.canary}})
	for _, list := range []string{"/v1/calls", "/v1/sessions", "/v1/files"} {
		for _, e := range s.do("GET", list, nil)["data"].([]any) {
			o := e.(map[string]any)
			if o["owner"] == "ben" { // ann may operate, and sees his, too
				continue
			}
			for _, name := range []string{"call_id", "session_id", "id"} {
				if id, _ := o[name].(string); id != "" {
					h.canaries = append(h.canaries, id)
				}
			}
		}
	}
	h.canaries = append(h.canaries, s.canary, h.traceID)
	return h
}

// Two people of one namespace share its tools. Neither reads, lists, follows, changes or guesses the other's sessions,
// calls and files, whatever operation of the document is tried, and each gets the same answer for the other's things as
// for things that do not exist.
func TestPeopleOfOneNamespace(t *testing.T) {
	w := newWorld(t)
	h := live(w.own)
	ben := tokenOf("ben", "a", access.Scopes(access.Read|access.Call))
	for _, path := range gets(t) {
		for _, s := range []*side{w.own, w.other} {
			for _, method := range []string{"m", "greet", "refuse", "crash"} {
				if method != "m" && !strings.Contains(path, "{method}") {
					continue
				}
				p := s.fill(strings.NewReplacer("{role}", "{clerk}", "{method}", method).Replace(path))
				got := w.send(t, "GET", p, "", ben, nil)
				for _, c := range h.canaries {
					text := strings.ReplaceAll(string(got.body)+fmt.Sprint(got.header), p, "")
					// says what was asked for
					text = detail.ReplaceAllString(text, "")
					// which people put for all
					if at := strings.Index(text, c); at >= 0 && !strings.HasSuffix(p, "/examples") {
						t.Errorf("GET %s: %d shows %s: ...%s", p, got.status, c,
							text[max(0, at-300):min(len(text), at+100)])
					}
				}
			}
		}
	}
	attack(t, w, h, ben)
	prompts(t, w, ben)
	for _, name := range []string{"ann", "ben"} {
		for _, in := range []agent.Namespace{"a", "b"} {
			listed(t, w, name, in, access.Scopes(access.Read|access.Call))
			listed(t, w, name, in, access.All)
		}
	}
}

// listed reads each session, call and file that is listed for the person: it is there for this person, and of the one
// who made it unless the token may operate. What is another's, in this namespace or elsewhere, is 404.
func listed(t *testing.T, w *world, name string, in agent.Namespace, scopes access.Scopes) {
	t.Helper()
	token := tokenOf(name, in, scopes)
	for list, id := range map[string]string{"/v1/sessions": "id", "/v1/calls": "call_id", "/v1/files": "id"} {
		var page struct {
			Data []map[string]any `json:"data"`
		}
		if err := json.Unmarshal(w.send(t, "GET", list, "", token, nil).body, &page); err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		// files are listed to their owner
		if nothing := name == "ben" && in == "b" && (scopes != access.All ||
			list == "/v1/files"); nothing != (len(page.Data) == 0) {
			t.Errorf("%s of %s in %s, who may %s, has %d entries", list, name, in, scopes, len(page.Data))
		}
		for _, o := range page.Data {
			got := w.send(t, "GET", list+"/"+o[id].(string), "", token, nil)
			if got.status != http.StatusOK || o["owner"] != nil && o["owner"] != name && scopes != access.All {
				t.Errorf("%s of %s in %s, who may %s, has %v: %d", list, name, in, scopes, o, got.status)
			}
		}
	}
}

// prompts asks for the prompt of a call, which those who may operate see: it shows the model that calls of others
// failed, and nothing of what was in them.
func prompts(t *testing.T, w *world, ben string) {
	t.Helper()
	var made struct {
		ID     string `json:"id"`
		CallID string `json:"call_id"`
	}
	ask := func(method, path, body, token string) answer {
		got := w.send(t, method, w.own.fill(path), w.own.fill(body), token, nil)
		if got.status >= 300 {
			t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
		}
		_ = json.Unmarshal(got.body, &made) // a list has none
		return got
	}
	ask("POST", "/v1/sessions", `{"role": "{clerk}", "debug": true}`, ben)
	session := made.ID
	ask("POST", "/v1/sessions/"+session+"/calls", `{"method": "crash", "args": ["ben"]}`, ben)
	call := "/v1/calls/" + made.CallID
	for _, path := range []string{call, call + "/events", "/v1/calls?session_id=" + session} {
		if got := ask("GET", path, "", ben); strings.Contains(string(got.body), w.own.canary) ||
			strings.Contains(string(got.body), "user_prompt") {
			t.Errorf("%s: %s", path, got.body)
		}
		if got := ask("GET", path, "", w.own.token); strings.Contains(string(got.body), w.own.canary) ||
			!strings.Contains(string(got.body), "an earlier failure ended in execution") {
			t.Errorf("%s, for one who may operate: %s", path, got.body)
		}
	}
}

// none is an id like that one, which nobody has.
func none(id string) string { return id[:len(id)-6] + "zzzzzz" }

// attack tries what names ann's things, and what does not exist.
func attack(t *testing.T, w *world, h hers, ben string) {
	t.Helper()
	ids := w.own.ids
	for _, q := range []struct {
		method, path, body string
		id                 string // what it names
		status             int
	}{
		{"POST", "/v1/sessions/ID/calls", `{"method": "greet", "args": [1]}`, ids["session"], 404},
		{"POST", "/v1/predict", `{"session_id": "ID", "signature": {"inputs": [{"name": "q"}], "outputs": [{"name": "a"}]}, "inputs": {"q": 1}}`, ids["session"], 404},
		{"POST", w.own.fill("/v1/signatures/{qa}/predict"), `{"session_id": "ID", "inputs": {"q": 1}}`, ids["session"],
			404},
		{"POST", w.own.fill("/v1/functions/{clerk}__greet"), `{"session_id": "ID", "arguments": {"args": [1]}}`,
			ids["session"], 404},
		{"POST", "/v1/files?session_id=ID", "bytes", ids["session"], 404},
		{"POST", w.own.fill("/v1/functions/{clerk}__read"), `{"arguments": {"file": {"$file": "ID"}}}`, ids["file"],
			200},
		{"POST", "/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "judge_call", "arguments": {"call_id": "ID", "verdict": "right"}}}`, ids["call"], 200},
		{"POST", "/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "call_method", "arguments": {"role": "` + ids["clerk"] + `", "method": "greet", "args": [1], "session_id": "ID"}}}`, ids["session"], 200},
		{"POST", "/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "` + ids["clerk"] +
			`__greet", "arguments": {"args": [1]}, "_meta": {"recurgent/session_id": "ID"}}}`, ids["session"], 200},
		{"GET", "/v1/calls?session_id=ID", "", ids["session"], 200},
		{"GET", "/v1/calls?parent_call_id=ID", "", h.parent, 200},
		{"GET", "/v1/calls?trace_id=ID", "", h.traceID, 200},
		{"GET", "/v1/sessions/ID/history?method=greet", "", ids["session"], 404},
		{"GET", "/v1/calls/ID/events?after=1", "", ids["call"], 404},
		{"POST", "/v1/calls/ID/cancel", "", ids["call"], 404},
		{"POST", "/v1/calls/ID/replay", "", ids["call"], 404},
		{"POST", "/v1/calls/ID/verdict", `{"verdict": "right"}`, ids["call"], 404},
		{"DELETE", "/v1/sessions/ID", "", ids["session"], 404},
		{"DELETE", "/v1/files/ID", "", ids["file"], 404},
	} {
		var said []string
		for _, id := range []string{q.id, none(q.id)} {
			header := map[string]string{"Accept": "application/json, text/event-stream"}
			if strings.HasPrefix(q.path, "/v1/files") {
				header["Content-Type"] = "text/plain"
			}
			got := w.send(t, q.method, strings.ReplaceAll(q.path, "ID", id), strings.ReplaceAll(q.body, "ID", id), ben,
				header)
			text := timeless.ReplaceAllString(strings.ReplaceAll(string(got.body), id, "ID"), "")
			if got.status != q.status || strings.Contains(text, w.own.canary) {
				t.Errorf("%s %s %s: %d %s", q.method, q.path, q.body, got.status, got.body)
			}
			said = append(said, text)
		}
		if said[0] != said[1] {
			t.Errorf("%s %s %s: of ann's\n%s\nand of nobody's\n%s", q.method, q.path, q.body, said[0], said[1])
		}
	}
	keyed := w.send(t, "POST", w.other.fill("/v1/sessions/{session}/calls"),
		`{"method": "greet", "args": ["`+w.own.canary+`"]}`, ben, map[string]string{"Idempotency-Key": "key-greet"})
	if keyed.status != http.StatusOK || keyed.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("ann's idempotency key: %d %s", keyed.status, keyed.body)
	}
}

// detail says what was asked for.
var detail = regexp.MustCompile(`"detail":"([^"\\]|\\.)*"`)

// timeless is what differs between any two replies.
var timeless = regexp.MustCompile(`"request_id":"[^"]*"|(call|sess)_[0-9a-z]{26}|"duration_ms":[0-9.]+|[0-9a-f]{32}`)
