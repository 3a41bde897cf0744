package daemon

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// left begins a call of the tool and returns what ends its request, its id, and the error of the request.
func (a *mcpClient) left(d *rig.Daemon, arguments object,
	meta mcp.Meta) (leave context.CancelFunc, callID string, ended <-chan error) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.t.Context())
	end := make(chan error, 1)
	go func() {
		_, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "call_method", Arguments: arguments, Meta: meta})
		end <- err
	}()
	rig.Until(a.t, "the call runs", func() bool {
		for _, one := range d.List("/v1/calls?status=running") {
			if one["method"] == arguments["method"] {
				callID, _ = one["call_id"].(string)
			}
		}
		return callID != ""
	})
	return cancel, callID, end
}

// A program for a client that has left is finished and kept: the next call asks no model. A client that goes
// while a program runs cancels its call, as the protocol says, and one that is too slow ends in a timeout.
func TestMCPForgeOutlivesItsClient(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	defer m.Release()
	d := rig.Start(t, m)
	a := overHTTP(t, d, newest)
	a.failure(a.call("call_method", object{"role": "shop", "method": "sells", "timeout_ms": 200}, nil), "timeout")
	var ids []string
	for method, meta := range map[string]mcp.Meta{"slow": nil, "slower": {"progressToken": "p"}} {
		leave, id, ended := a.left(d, object{"role": "shop", "method": method, "args": []any{20, 22}}, meta)
		rig.Until(t, "the model is asked", func() bool { return m.Count("shop", method) == 1 })
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the client that left: %v", err)
		}
		ids = append(ids, id)
	}
	m.Release()
	for _, id := range ids {
		var view object // from the replica that reports it: another one may not know it yet
		rig.Until(t, "the call ends", func() bool {
			view = d.Get("/v1/calls/" + id)
			return view["outcome_status"] != "running"
		})
		if view["outcome_status"] != "ok" {
			t.Errorf("a call whose client left: %v %v", view["outcome_status"], view["error_message"])
		}
	}
	for _, method := range []string{"slow", "slower"} {
		r := a.call("call_method", object{"role": "shop", "method": method, "args": []any{40, 2}}, nil)
		if a.value(r, 42); r.Meta["recurgent/program"] != "persisted" || m.Count("shop", method) != 1 {
			t.Errorf("%s: the next call is %v, the model was asked %d times", method, r.Meta, m.Count("shop", method))
		}
	}

	a.value(a.call("call_method", object{"role": "shop", "method": "spins", "args": []any{false}}, nil), 1)
	leave, id, ended := a.left(d, object{"role": "shop", "method": "spins", "args": []any{true}}, nil)
	leave()
	<-ended
	rig.Until(t, "the call of a running program is canceled",
		func() bool { return d.Get("/v1/calls/" + id)["outcome_error_type"] == "canceled" })
}

// notifications/cancelled cancels a call over HTTP, while a model writes, too; one of another client's session, or
// without one, does not.
func TestMCPCancelNotification(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	defer m.Release()
	d := rig.Start(t, m)
	notify := func(session string, id any) {
		t.Helper()
		header := map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": legacy}
		if session != "" {
			header["Mcp-Session-Id"] = session
		}
		body := rig.Encode(t, object{"jsonrpc": "2.0", "method": "notifications/cancelled",
			"params": object{"requestId": id}})
		if status := post(t, d, http.MethodPost, body, header); status != http.StatusAccepted {
			t.Errorf("a notification: %d", status)
		}
	}
	a, b := overHTTP(t, d, legacy), overHTTP(t, d, legacy)
	leave, id, ended := a.left(d, object{"role": "shop", "method": "slow"}, nil)
	rig.Until(t, "the model is asked", func() bool { return m.Count("shop", "slow") == 1 })
	for request := range 5 {
		notify("", request)
		notify(b.ID(), request)
	}
	if got := d.Get("/v1/calls/" + id)["outcome_status"]; got != "running" {
		t.Errorf("after others' notifications the call is %v", got)
	}
	leave() // this version's client says so by the notification
	<-ended
	rig.Until(t, "the call is canceled",
		func() bool { return d.Get("/v1/calls/" + id)["outcome_error_type"] == "canceled" })
}

// Faults of a request over HTTP are JSON-RPC errors with the status that says so, and with the id where it could be
// read.
func TestMCPErrorsAreJSONRPC(t *testing.T) {
	t.Parallel()
	id := oidctest.New(t)
	id.Replace(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	d := rig.Start(t, nil, ofIssuer(id, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		"ann ann-token-0123456789abcdef\nben ben-token-0123456789abcdef scopes=read\n"+
			"cas cas-token-0123456789abcdef rate=0.0001/s\n"))...)
	open := rig.Start(t, nil) // without tokens
	ann := map[string]string{"Authorization": "Bearer ann-token-0123456789abcdef"}
	ben := map[string]string{"Authorization": "Bearer ben-token-0123456789abcdef"}
	cas := map[string]string{"Authorization": "Bearer cas-token-0123456789abcdef"}
	dan := map[string]string{"Authorization": "Bearer " + id.Token(t, time.Now(), nil)} // of the issuer
	with := func(header map[string]string, more ...string) map[string]string {
		out := map[string]string{"Accept": "application/json, text/event-stream"}
		for k, v := range header {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	list := `{"jsonrpc":"2.0","id":"a","method":"tools/list"}`
	if status := post(t, d, "POST", []byte(list), with(cas)); status != http.StatusOK {
		t.Errorf("the first request of a slow token: %d", status)
	}
	for name, c := range map[string]struct {
		method, body string
		header       map[string]string
		status       int
		code         float64
		id           any
	}{
		"above the rate": {"POST", list, with(cas), 429, -32000, nil},
		"no issuer":      {"POST", list, with(dan), 503, -32000, nil},
		"another host":   {"POST", list, with(nil, "Host", "evil.example"), 421, -32600, nil},
		"no token":       {"POST", list, with(nil), 401, -32000, nil},
		"a missing scope": {"POST", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"r__m"}}`,
			with(ben), 403, -32000, 7.0},
		"another origin": {"POST", list, with(ann, "Origin", "https://evil.example", "Sec-Fetch-Site",
			"cross-site"), 403, -32000, nil},
		"no JSON":               {"POST", list, with(ann, "Content-Type", "text/plain"), 415, -32600, nil},
		"nothing to take":       {"POST", list, with(ann, "Accept", "text/plain"), 400, -32600, "a"},
		"a large body":          {"POST", strings.Repeat(" ", 5<<20), with(ann), 413, -32600, nil},
		"broken JSON":           {"POST", `{"jsonrpc":`, with(ann), 400, -32700, nil},
		"nothing":               {"POST", ``, with(ann), 400, -32700, nil},
		"no object":             {"POST", `7`, with(ann), 400, -32600, nil},
		"no version":            {"POST", `{"id":3,"method":"ping"}`, with(ann), 400, -32600, 3.0},
		"no method":             {"POST", `{"jsonrpc":"2.0","id":3}`, with(ann), 400, -32600, 3.0},
		"an id of a wrong type": {"POST", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, with(ann), 400, -32600, nil},
		"a large id": {"POST", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, with(ann), 400,
			-32600, 9007199254740992.0},
		"a broken id": {"POST", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, with(ann), 400, -32600, 1.5},
		"an id that is no text": {"POST", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", with(ann), 400,
			-32600, nil},
		"a list of parameters": {"POST", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":[1]}`, with(ann), 400,
			-32602, 3.0},
		"an empty batch": {"POST", `[]`, with(ann), 400, -32600, nil},
		"a batch": {"POST", "[" + list + "]", with(ann, "Mcp-Protocol-Version", legacy), 400, -32600,
			nil},
		"no such version": {"POST", list, with(ann, "Mcp-Protocol-Version", "1999-01-01"), 400, -32600, "a"},
		"an unknown method": {"POST", `{"jsonrpc":"2.0","id":"a","method":"tools/sing"}`,
			with(ann, "Mcp-Protocol-Version", legacy), 200, -32601, "a"},
		"what is not declared": {"POST", `{"jsonrpc":"2.0","id":"a","method":"prompts/list"}`,
			with(ann, "Mcp-Protocol-Version", legacy), 200, -32601, "a"},
		"its newest version": {"POST", `{"jsonrpc":"2.0","id":"a","method":"prompts/list"}`,
			with(ann, "Mcp-Protocol-Version", newest), 404, -32601, "a"},
		"an old stream": {"GET", ``, with(ann), 405, -32600, nil},
	} {
		to := d
		if c.header["Host"] != "" {
			to = open
		}
		status, kind, answer := postAnswer(t, to, c.method, []byte(c.body), c.header)
		fault, _ := answer["error"].(object)
		if status != c.status || kind != "application/json" || answer["jsonrpc"] != "2.0" || fault["code"] != c.code ||
			fault["message"] == "" || !rig.Equal(c.id, answer["id"]) {
			t.Errorf("%s: %d %s %v, want %d with %v for %v", name, status, kind, answer, c.status, c.code, c.id)
		}
	}
}
