package mcp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// posted returns the reply to a message in a version of the protocol that has batches.
func posted(t *testing.T, s *Server, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(headerVersion, "2025-03-26")
	w := httptest.NewRecorder()
	s.Handler(1<<20).ServeHTTP(w, r)
	return w
}

// Each request of a batch is answered, whatever the others are.
func TestBatches(t *testing.T) {
	t.Parallel()
	s := serverOf(t, &fake{value: `"x"`}, map[string]*agent.Interface{"m": nil})
	ping := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id) }
	pong := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id) }
	fault := func(id string, code int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d`, id, code)
	}
	many, pongs := []string{}, []string{}
	for i := range 3 * batchAtOnce {
		many, pongs = append(many, ping(i)), append(pongs, pong(i))
	}
	for name, c := range map[string]struct {
		messages string
		status   int
		answers  []string
	}{
		"two": {ping(4) + "," + `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"r__m"}}`, 200,
			[]string{pong(4), `{"jsonrpc":"2.0","id":5,"result":{"_meta":`}},
		"many":                    {strings.Join(many, ","), 200, pongs},
		"an unknown notification": {ping(4) + `,{"jsonrpc":"2.0","method":"notifications/foo"}`, 200, []string{pong(4)}},
		"an undeclared method": {ping(4) + `,{"jsonrpc":"2.0","id":5,"method":"prompts/list"}`, 200,
			[]string{pong(4), fault("5", -32601)}},
		"no message": {ping(4) + `,5,[` + ping(6) + `],{"id":7,"method":"ping"},{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, 200,
			[]string{pong(4), fault("null", -32600), fault("null", -32600), fault("7", -32600), fault("1.5", -32600)}},
		"bad params": {ping(4) + `,{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[1]}`, 200,
			[]string{pong(4), fault("5", -32602)}},
		"no params": {ping(4) + `,{"jsonrpc":"2.0","id":5,"method":"tools/call"}`, 200,
			[]string{pong(4), fault("5", -32600)}},
		"only faults": {`1,{"jsonrpc":"2.0","id":5,"method":"prompts/list"}`, 400,
			[]string{"[" + fault("null", -32600)}},
		"too many":           {strings.Repeat("1,", maxBatch) + "1", 400, []string{fault("null", -32600)}},
		"only notifications": {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, nil},
	} {
		w := posted(t, s, "["+c.messages+"]")
		body := w.Body.String()
		got := slices.DeleteFunc(strings.Split(body, "\n"), func(line string) bool {
			return line == "" || strings.HasPrefix(line, "event: ")
		})
		whole := w.Code == c.status && len(got) == len(c.answers)
		for _, want := range c.answers {
			whole = whole && slices.ContainsFunc(got, func(line string) bool {
				return strings.HasPrefix(strings.TrimPrefix(line, "data: "), want)
			})
		}
		if !whole {
			t.Errorf("%s: %d %s\nwant %d %s", name, w.Code, body, c.status, c.answers)
		}
	}
}

// The bridge passes what answers a batch on: events one by one, a list as it is, and nothing for notifications.
func TestBatchesOverTheBridge(t *testing.T) {
	t.Parallel()
	say, hear, end := bridged(t, serverOf(t, &fake{}, nil).Handler(1<<20).ServeHTTP)
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},` +
		`"clientInfo":{"name":"t","version":"1"}}}` + "\n")
	if got := hear(); !strings.Contains(got, `"protocolVersion":"2025-03-26"`) {
		t.Fatal(got)
	}
	const ping, foo = `{"jsonrpc":"2.0","id":4,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/foo"}`
	for _, c := range []struct{ said, want string }{
		{"[" + ping + "," + foo + "]", `{"jsonrpc":"2.0","id":4,"result":{}}`},
		{"[1]", `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"[" + foo + "]\n[" + ping + "]", `{"jsonrpc":"2.0","id":4,"result":{}}`},
	} {
		say(c.said + "\n")
		if got := hear(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.said, got, c.want)
		}
	}
	end()
	if got := hear(); got != "" {
		t.Errorf("also heard %s", got)
	}
}
