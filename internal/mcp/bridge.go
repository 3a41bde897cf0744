package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// BridgeOptions configures a Bridge. All fields but Logger are required.
type BridgeOptions struct {
	In     io.Reader    // from the client, one message per line
	Out    io.Writer    // to the client, one message per line
	URL    string       // of the daemon's MCP endpoint
	HTTP   *http.Client // must add the access token
	Logger zerolog.Logger
}

// Bounds of messages, in bytes.
const (
	maxLine  = 8 << 20  // of a line from the client
	maxEvent = 64 << 20 // of an event from the daemon, which contains a large value twice: as text and structured
)

// methodCancelled is the notification with which a client cancels a request.
const methodCancelled = "notifications/cancelled"

// Bridge passes the client's messages to a daemon, and the daemon's messages to the client, unchanged. It returns
// when the client's last request is answered, when writing to Out fails, or when ctx ends. A line that is not a message
// is answered with an error. After the answer to a request, the client gets no further message about it.
func Bridge(ctx context.Context, o BridgeOptions) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{o: o, ctx: ctx, stop: cancel, session: rand.Text(), pending: map[string]*asked{}}
	b.run()
}

// A bridge is the state of one client. The goroutine of run reads messages; each request has a goroutine of its own.
type bridge struct {
	o       BridgeOptions
	ctx     context.Context // of the bridge, which is one call of Bridge
	stop    context.CancelFunc
	session string // identifies the bridge's requests to the daemon, so that notifications/cancelled finds them
	// protocol version from initialize; "" if the client names it in each request; used only by the goroutine of run
	version string

	writing sync.Mutex // held while a line is written

	mu      sync.Mutex
	pending map[string]*asked // requests without an answer, by id; guarded by mu

	requests sync.WaitGroup // goroutines that answer requests
	watching sync.WaitGroup // the goroutine that watches the list of tools
}

// asked is a request of the client that has no answer yet.
type asked struct {
	message
	cancel   context.CancelFunc
	answered bool // a message about it was delivered; used only by the goroutine that asks
	over     bool // it is answered or canceled; guarded by bridge.mu
}

// run reads the client's messages until there are no more.
func (b *bridge) run() {
	type got struct {
		line  []byte
		fault *jsonrpc.Error
		err   error
	}
	read := make(chan got)
	go func() { // may outlive run: a read of the last message cannot be interrupted
		in := &lines{in: bufio.NewReader(b.o.In), most: maxLine}
		for {
			line, fault, err := in.next()
			select {
			case read <- got{line, fault, err}:
			case <-b.ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case next := <-read:
			switch {
			case next.err != nil:
				b.end()
				return
			case next.fault != nil:
				b.write(errorMessage(nil, next.fault))
			default:
				b.take(next.line)
			}
		case <-b.ctx.Done():
			b.requests.Wait()
			b.watching.Wait()
			return
		}
	}
}

// end waits for the answers to the client's requests, but cancels subscriptions, which have no end of their own.
func (b *bridge) end() {
	b.mu.Lock()
	for _, a := range b.pending {
		if a.method == methodListen {
			a.cancel()
		}
	}
	b.mu.Unlock()
	b.requests.Wait()
	b.stop()
	b.watching.Wait()
}

// take handles one message of the client.
func (b *bridge) take(line []byte) {
	m, fault := readMessage(line)
	switch {
	case fault == nil && m.batch && (b.version == "" || b.version >= firstWithoutBatches):
		fault = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "a line must hold one message: this version of the protocol has no batches"}
		fallthrough
	case fault != nil:
		b.write(errorMessage(m.id, fault))
	case m.method == "" && !m.batch: // a response, though the server sends no requests
	case m.method == methodCancelled:
		b.cancel(line, m)
	case m.id != nil && m.method == "initialize":
		b.initialize(line, m)
	case m.id != nil || m.batch:
		b.ask(line, m)
	}
	// Other notifications are dropped: the daemon keeps no state of its clients.
}

// firstWithoutBatches is the first version of the protocol without batches.
const firstWithoutBatches = "2025-06-18"

// ask sends a request, and delivers what comes of it in a goroutine.
func (b *bridge) ask(line []byte, m message) {
	ctx, cancel := context.WithCancel(b.ctx)
	a := &asked{message: m, cancel: cancel}
	if !b.enter(a) {
		cancel()
		b.write(errorMessage(m.id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "a request with this id is in progress"}))
		return
	}
	// here and not in the goroutine, since version belongs to this goroutine
	header := b.header(m)
	b.requests.Go(func() {
		defer cancel()
		defer b.leave(a)
		deliver := func(message []byte, last bool) { b.deliver(a, message, last) }
		// a batch has no single last answer, so an error after some answers is dropped
		if err := b.answer(ctx, m, line, header, deliver); err != nil && !(a.batch && a.answered) {
			b.deliver(a, errorMessage(m.id, err), true)
		}
	})
}

// enter registers a request. It returns false if one with the same id is pending.
func (b *bridge) enter(a *asked) bool {
	if a.batch {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending[string(a.id)] != nil {
		return false
	}
	b.pending[string(a.id)] = a
	return true
}

// leave marks a request as over. A later request may then reuse its id.
func (b *bridge) leave(a *asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.over = true; b.pending[string(a.id)] == a {
		delete(b.pending, string(a.id))
	}
}

// deliver writes a message about a request, unless the request is over. Before the last message it frees the id, since
// the client may reuse it at once.
func (b *bridge) deliver(a *asked, message []byte, last bool) {
	a.answered = true
	b.mu.Lock()
	over := a.over
	b.mu.Unlock()
	if over {
		return
	}
	if last {
		b.leave(a)
	}
	b.write(message)
}

// cancel cancels a pending request. The client gets no further message about it.
func (b *bridge) cancel(line []byte, m message) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(m.params, &p) != nil {
		return
	}
	b.mu.Lock()
	a := b.pending[string(p.RequestID)]
	// the protocol forbids canceling initialize
	if a == nil || a.method == "initialize" {
		b.mu.Unlock()
		return
	}
	a.over = true
	b.mu.Unlock()
	b.requests.Go(func() {
		// Closing the connection alone would not cancel a call in the daemon.
		if resp, err := b.post(b.ctx, line, http.Header{}); err == nil {
			_ = resp.Body.Close() // the reply has no content
		}
		a.cancel()
	})
}

// initialize settles the protocol version before the next message is read. Then it starts to watch the list of tools.
func (b *bridge) initialize(line []byte, m message) {
	var result []byte
	if err := b.answer(b.ctx, m, line, http.Header{}, func(message []byte, _ bool) { result = message }); err != nil {
		result = errorMessage(m.id, err)
	}
	var said struct {
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(result, &said) == nil && said.Result.ProtocolVersion != "" {
		first := b.version == ""
		b.version = said.Result.ProtocolVersion
		if first {
			b.watch()
		}
	}
	b.write(result)
}

// write writes a message as one line. If that fails, the bridge ends.
func (b *bridge) write(message []byte) {
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return // not reached: the daemon sends valid JSON
	}
	line.WriteByte('\n')
	b.writing.Lock()
	defer b.writing.Unlock()
	if _, err := b.o.Out.Write(line.Bytes()); err != nil {
		b.stop()
	}
}

// Headers, members of _meta and methods of the protocol.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerSession = "Mcp-Session-Id"
	metaVersion   = "io.modelcontextprotocol/protocolVersion"

	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"

	methodListens     = "notifications/subscriptions/acknowledged"
	methodListen      = "subscriptions/listen"
	methodListChanged = "notifications/tools/list_changed"
)

// header returns the headers that HTTP requires for a message. In the newest version they repeat parts of the message;
// in older ones there is only the version that initialize has settled.
func (b *bridge) header(m message) http.Header {
	var p struct {
		Name   string         `json:"name"`
		URI    string         `json:"uri"`
		TaskID string         `json:"taskId"`
		Meta   map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(m.params, &p) // the daemon reports invalid params
	h := http.Header{}
	version, _ := p.Meta[metaVersion].(string)
	if version == "" {
		version = b.version
	}
	if version != "" {
		h.Set(headerVersion, version)
	}
	if version < newestVersion {
		return h
	}
	h.Set(headerMethod, m.method)
	if name := cmp.Or(p.Name, p.URI, p.TaskID); name != "" {
		h.Set(headerName, name)
	}
	return h
}

// post sends a message to the daemon. The caller must close the body.
func (b *bridge) post(ctx context.Context, message []byte, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.o.URL, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(headerSession, b.session)
	return b.o.HTTP.Do(r)
}

// answer delivers the messages that the daemon sends for a request; the last one is the response. If there is no
// response, it returns the error to respond with.
func (b *bridge) answer(ctx context.Context, asked message, line []byte, header http.Header,
	deliver func(message []byte, last bool)) *jsonrpc.Error {
	return b.each(ctx, line, header, func(message []byte) (done bool) {
		m, _ := readMessage(message)
		if m.id == nil && m.method == "" && !asked.batch { // an error about a message whose id the daemon did not read
			message = withID(message, asked.id)
		}
		last := m.method == "" && !asked.batch
		deliver(message, last)
		return last
	})
}

// withID returns the response with another id.
func withID(response []byte, id json.RawMessage) []byte {
	var r struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   json.RawMessage `json:"error,omitempty"`
	}
	if json.Unmarshal(response, &r) != nil {
		return response
	}
	r.ID = id
	out, err := json.Marshal(r)
	if err != nil {
		return response // not reached: its parts are valid JSON
	}
	return out
}

// each sends a request and calls take for each message of the reply, until take returns true. Otherwise it returns an
// error that explains why there is no response.
func (b *bridge) each(ctx context.Context, request []byte, header http.Header,
	take func(message []byte) (done bool)) *jsonrpc.Error {
	resp, err := b.post(ctx, request, header)
	if err != nil {
		return &jsonrpc.Error{Code: codeUnavailable, Message: "the daemon at " + b.o.URL + " does not answer: " +
			err.Error()}
	}
	defer func() { _ = resp.Body.Close() }() // it was only read from
	if resp.StatusCode == http.StatusAccepted {
		return nil // a batch without requests
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		in := &events{in: bufio.NewReader(resp.Body), most: maxEvent}
		for {
			message, err := in.next()
			if err != nil {
				return &jsonrpc.Error{Code: codeUnavailable, Message: "the daemon at " + b.o.URL +
					" sent an incomplete answer: " + err.Error()}
			}
			if take(message) {
				return nil
			}
		}
	case "application/json":
		message, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
		if _, fault := readMessage(message); err == nil && fault == nil {
			take(message)
			return nil
		}
	}
	return &jsonrpc.Error{Code: codeOf(resp.StatusCode), Message: "the daemon at " + b.o.URL + " answers " +
		strings.TrimSpace(resp.Status)}
}

// listenAs is the id of the bridge's own subscription.
const listenAs = "recurgentd-mcp"

// watch subscribes to changes of the list of tools and passes them to the client, whose version allows notifications at
// any time. It returns once the subscription is active, or has failed for the first time; it is then repeated until the
// bridge ends.
func (b *bridge) watch() {
	ready := make(chan struct{})
	begun := sync.OnceFunc(func() { close(ready) })
	b.watching.Go(func() {
		for again := false; ; again = true {
			b.listen(begun, again)
			begun()
			select {
			case <-time.After(listenPause):
			case <-b.ctx.Done():
				return
			}
		}
	})
	<-ready
}

// listenPause is the pause before a lost subscription is repeated.
const listenPause = 5 * time.Second

// listen holds one subscription until the daemon or the bridge ends it. Changes during a pause are unknown, so with
// again it notifies the client at the beginning.
func (b *bridge) listen(begun func(), again bool) {
	request := agent.Encoded(map[string]any{"jsonrpc": "2.0", "id": listenAs, "method": methodListen,
		"params": map[string]any{
			"notifications": map[string]any{"toolsListChanged": true},
			"_meta": map[string]any{metaVersion: newestVersion, metaClient: map[string]any{"name": listenAs,
				"version": "1"},
				metaCapabilities: map[string]any{}}}})
	m, _ := readMessage(request)
	err := b.each(b.ctx, request, b.header(m), func(message []byte) (done bool) {
		begun()
		m, _ := readMessage(message)
		if m.method == methodListChanged || again && m.method == methodListens {
			b.write([]byte(`{"jsonrpc":"2.0","method":"` + methodListChanged + `"}`))
		}
		return m.method == ""
	})
	if err != nil && b.ctx.Err() == nil {
		b.o.Logger.Debug().Err(errors.New(err.Message)).Msg(
			"changes of the list of tools arrive once the daemon answers again")
	}
}
