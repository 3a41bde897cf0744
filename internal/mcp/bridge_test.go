package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// bridged starts a bridge to a daemon with that behavior. say writes to it, hear reads a line from it ("" at the end),
// and end closes its input and waits.
func bridged(t *testing.T, daemon http.HandlerFunc) (say func(text string), hear func() string, end func()) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = io.NopCloser(io.LimitReader(r.Body, 16<<20))
		daemon(w, r)
	}))
	t.Cleanup(s.Close)
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		defer close(ended)
		Bridge(ctx, BridgeOptions{In: in, Out: out, URL: s.URL + "/mcp", HTTP: s.Client(),
			Logger: zerolog.Nop()})
		_ = out.Close()
	}()
	heard := bufio.NewReader(fromBridge)
	say = func(text string) {
		if _, err := io.WriteString(toBridge, text); err != nil {
			t.Error(err)
		}
	}
	hear = func() string {
		text, _ := heard.ReadString('\n')
		return strings.TrimSuffix(text, "\n")
	}
	return say, hear, func() {
		_ = toBridge.Close()
		<-ended
	}
}

// received is what a daemon received.
func received(t *testing.T, r *http.Request) (m message, text string) {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	m, fault := readMessage(data)
	if fault != nil {
		t.Errorf("the daemon got %s", data)
	}
	return m, string(data)
}

// answers is a daemon that answers every request with the request's method.
func answers(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		m, _ := received(t, r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc": "2.0", "id": %s, "result": {"method": %q}}`, m.id, m.method)
	}
}

// A line that is not a message is answered with the matching error, and the bridge goes on. Byte order marks, other
// line ends and a missing last one are accepted.
func TestBridgeLines(t *testing.T) {
	t.Parallel()
	const ping, pong = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{"method":"ping"}}`
	const second, again = `{"jsonrpc":"2.0","id":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":2,"result":{"method":"ping"}}`
	fault := func(id string, code int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,`, id, code)
	}
	for name, c := range map[string]struct {
		said string
		want []string // beginnings of lines
	}{
		"as they should be":   {ping + "\n" + second + "\n", []string{pong, again}},
		"a byte order mark":   {"\ufeff" + ping + "\n", []string{pong}},
		"other ends of lines": {ping + "\r\n\r\n  \n" + second + "\r\n", []string{pong, again}},
		"no end":              {ping, []string{pong}},
		"cut off":             {ping + "\n" + ping[:20], []string{pong, fault("null", -32700)}},
		"no JSON":             {"hello\n" + ping + "\n", []string{fault("null", -32700), pong}},
		"no text":             {"\xff\xfe\x00\n" + ping + "\n", []string{fault("null", -32700), pong}},
		"two on a line":       {ping + ping + "\n" + ping + "\n", []string{fault("null", -32700), pong}},
		"a batch":             {"[" + ping + "]\n" + ping + "\n", []string{fault("null", -32600), pong}},
		"an empty batch":      {"[]\n" + ping + "\n", []string{fault("null", -32600), pong}},
		"no object":           {"7\n" + ping + "\n", []string{fault("null", -32600), pong}},
		"another version": {`{"jsonrpc":"1.0","id":4,"method":"ping"}` + "\n" + ping + "\n",
			[]string{fault("4", -32600), pong}},
		"no method": {`{"jsonrpc":"2.0","id":"x"}` + "\n" + ping + "\n",
			[]string{fault(`"x"`, -32600), pong}},
		"a method of a wrong type": {`{"jsonrpc":"2.0","id":4,"method":7}` + "\n" + ping + "\n",
			[]string{fault("4", -32600), pong}},
		"an id of a wrong type": {`{"jsonrpc":"2.0","id":[1],"method":"ping"}` + "\n" + ping + "\n",
			[]string{fault("null", -32600), pong}},
		"too long": {`{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"` + strings.Repeat("x",
			maxLine) + `"}}` + "\n" + ping + "\n", []string{fault("null", -32600), pong}},
		"an answer and a notification": {`{"jsonrpc":"2.0","id":9,"result":{}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/progress"}` + "\n" + ping + "\n", []string{pong}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			say, hear, end := bridged(t, answers(t))
			go func() {
				// the second request begins when the first is answered
				for part := range strings.SplitAfterSeq(c.said, "\n") {
					say(part)
				}
				end()
			}()
			var got []string
			for one := hear(); one != ""; one = hear() {
				got = append(got, one)
			}
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			rest := got
			for _, want := range c.want { // responses come in any order
				at := -1
				for i, one := range rest {
					if strings.HasPrefix(one, want) {
						at = i
					}
				}
				if at < 0 {
					t.Fatalf("got %q, want %q", got, c.want)
				}
				rest = append(append([]string{}, rest[:at]...), rest[at+1:]...)
			}
		})
	}
}

// After its response or its cancellation, nothing more about a request reaches the client. The daemon hears of the
// cancellation.
func TestBridgeEndsRequests(t *testing.T) {
	t.Parallel()
	canceled, begun := make(chan string, 1), make(chan struct{})
	sessions := make(chan string, 8)
	say, hear, end := bridged(t, func(w http.ResponseWriter, r *http.Request) {
		m, text := received(t, r)
		sessions <- r.Header.Get(headerSession)
		event := func(message string) {
			_, _ = io.WriteString(w, ": a comment\n\nevent: message\ndata: "+message+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		switch {
		case m.method == methodCancelled:
			canceled <- text
			w.WriteHeader(http.StatusAccepted)
			return
		case m.method == "ping":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":9007199254740993}}`)
		if string(m.id) == "2" {
			close(begun)
			<-r.Context().Done()
		}
		event(`{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":{}}`)
		event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":"late"}}`)
	})
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":9007199254740993}}`
	hears := func(want string) {
		t.Helper()
		if got := hear(); got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}` + "\n")
	hears(progress)
	hears(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}` + "\n")
	hears(progress)
	<-begun
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}` + "\n")
	if got := hear(); !strings.Contains(got, `"id":2,"error":{"code":-32600`) {
		t.Errorf("the same id again: %s", got)
	}
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}` + "\n")
	if got := <-canceled; !strings.Contains(got, `"requestId":2`) {
		t.Errorf("the daemon heard %s", got)
	}
	say(`{"jsonrpc":"2.0","id":3,"method":"tools/call"}` + "\n")
	hears(progress)
	hears(`{"jsonrpc":"2.0","id":3,"result":{}}`)
	end()
	hears("")
	close(sessions)
	first := <-sessions
	for one := range sessions {
		if one != first || one == "" {
			t.Errorf("the daemon knows the client as %q and as %q", first, one)
		}
	}
}

// The bridge survives the end of its daemon: requests are answered with an error that explains it, and refusals with
// the daemon's own.
func TestBridgeToADaemonThatRefuses(t *testing.T) {
	t.Parallel()
	say, hear, end := bridged(t, func(w http.ResponseWriter, r *http.Request) {
		m, _ := received(t, r)
		switch {
		case m.method == "refused":
			WriteError(w, http.StatusTooManyRequests, nil, "too many", json.RawMessage(`{"code":"rate_limited"}`))
		case m.method == "broken":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")
		default:
			panic(http.ErrAbortHandler)
		}
	})
	for method, want := range map[string]string{
		"refused": `{"jsonrpc":"2.0","id":"q","error":{"code":-32000,"message":"too many","data":{"code":"rate_limited"}}}`,
		"gone":    `{"jsonrpc":"2.0","id":"q","error":{"code":-32000,"message":"the daemon at `,
		"broken":  `{"jsonrpc":"2.0","id":"q","error":{"code":-32000,"message":"the daemon at `,
	} {
		say(`{"jsonrpc":"2.0","id":"q","method":"` + method + `"}` + "\n")
		got := hear()
		if method == "broken" {
			got = hear()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
	end()
}
