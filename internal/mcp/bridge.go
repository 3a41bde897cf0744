package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/rs/zerolog"
)

// BridgeOptions says what is bridged. All fields but Logger are required.
type BridgeOptions struct {
	In     io.Reader    // of the client: a message a line
	Out    io.Writer    // to the client, likewise
	URL    string       // of the daemon's /mcp
	HTTP   *http.Client // adds the access token
	Logger zerolog.Logger
}

// Bounds of messages, in bytes.
const (
	maxLine  = 8 << 20  // of the client
	maxEvent = 64 << 20 // of the daemon: a large value comes twice, as text and structured
)

// methodCancelled is the notification by which a client cancels a request.
const methodCancelled = "notifications/cancelled"

// Bridge passes each message of the client on to a daemon, and what the daemon answers back, as they are: until the client's last message is answered,
// nobody reads what is written, or ctx ends. A line that is no message is answered with the error that says so, and ends nothing. Once a request is
// answered, nothing more comes of it. An error means that the daemon did not answer at the beginning.
func Bridge(ctx context.Context, o BridgeOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{o: o, ctx: ctx, stop: cancel, session: rand.Text(), pending: map[string]*asked{}}
	if err := b.greet(); err != nil {
		return fmt.Errorf("speak MCP to the daemon at %s: %w", o.URL, err)
	}
	return b.run()
}

// A bridge is the state of one client.
type bridge struct {
	o       BridgeOptions
	ctx     context.Context //nolint:containedctx // of the bridge, which is one call of Bridge
	stop    context.CancelFunc
	session string // marks the bridge's requests for the daemon, which cancels those that the client cancels
	// of the protocol, that initialize has settled; "" where the client says it with each request; used by the goroutine that reads
	version string

	writing sync.Mutex // one line at a time

	mu      sync.Mutex
	pending map[string]*asked // requests that are not answered, by id; guarded by mu

	requests sync.WaitGroup
	watching sync.WaitGroup // for changes of the list
}

// asked is a request of the client that is not answered yet.
type asked struct {
	message
	cancel   context.CancelFunc
	answered bool // something has come of it; used by the goroutine that asks
	over     bool // it is answered or canceled; guarded by bridge.mu
}

// greet asks whether there is a daemon that takes the token.
func (b *bridge) greet() error {
	resp, err := b.post(b.ctx, []byte(`{"jsonrpc":"2.0","id":0,"method":"ping"}`), http.Header{})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // what came of it says enough
	return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text))
}

// run reads the client's messages to their end.
func (b *bridge) run() error {
	type got struct {
		line  []byte
		fault *jsonrpc.Error
		err   error
	}
	read := make(chan got)
	go func() { // ends with the client: what it says last may never come
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
				return nil
			case next.fault != nil:
				b.write(errorMessage(nil, next.fault))
			default:
				b.take(next.line)
			}
		case <-b.ctx.Done():
			b.requests.Wait()
			b.watching.Wait()
			return nil
		}
	}
}

// end waits for the answers of what the client has asked, but for those that come only when it says so.
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

// take passes one message on.
func (b *bridge) take(line []byte) {
	m, fault := readMessage(line)
	switch {
	case fault == nil && m.batch && (b.version == "" || b.version >= firstWithoutBatches):
		fault = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "a line must have one message: this version of the protocol has no batches"}
		fallthrough
	case fault != nil:
		b.write(errorMessage(m.id, fault))
	case m.method == "" && !m.batch: // an answer to what nobody asked
	case m.method == methodCancelled:
		b.cancel(line, m)
	case m.id != nil && m.method == "initialize":
		b.initialize(line, m)
	case m.id != nil || m.batch:
		b.ask(line, m)
	}
	// Other notifications are of no use to the daemon, which keeps nothing of its clients.
}

// firstWithoutBatches is the version of the protocol that has no batches any more.
const firstWithoutBatches = "2025-06-18"

// ask has a request answered in its own time.
func (b *bridge) ask(line []byte, m message) {
	ctx, cancel := context.WithCancel(b.ctx)
	a := &asked{message: m, cancel: cancel}
	if !b.enter(a) {
		cancel()
		b.write(errorMessage(m.id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "a request with this id is under way"}))
		return
	}
	header := b.header(m)
	b.requests.Go(func() {
		defer cancel()
		defer b.leave(a)
		deliver := func(message []byte, last bool) { b.deliver(a, message, last) }
		// a batch has no last answer
		if err := b.answer(ctx, m, line, header, deliver); err != nil && !(a.batch && a.answered) {
			b.deliver(a, errorMessage(m.id, err), true)
		}
	})
}

// enter notes a request; false where one with its id is under way.
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

func (b *bridge) leave(a *asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.over = true; b.pending[string(a.id)] == a {
		delete(b.pending, string(a.id))
	}
}

// deliver writes what comes of a request that is neither answered nor canceled. The client may use its id again as soon as it has the last of it.
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

// cancel cancels the request that a client does not want any more. Nothing more comes of it.
func (b *bridge) cancel(line []byte, m message) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(m.params, &p) != nil {
		return
	}
	b.mu.Lock()
	a := b.pending[string(p.RequestID)]
	if a == nil || a.method == "initialize" {
		b.mu.Unlock()
		return
	}
	a.over = true
	b.mu.Unlock()
	b.requests.Go(func() {
		// The daemon would go on with what its client has only left.
		if resp, err := b.post(b.ctx, line, http.Header{}); err == nil {
			_ = resp.Body.Close() // nothing is read of it
		}
		a.cancel()
	})
}

// initialize settles the version of the protocol before the next message is read, and follows changes of the list for the client.
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

// write writes a message as a line. Where nobody reads, the bridge ends.
func (b *bridge) write(message []byte) {
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return // the daemon sends JSON
	}
	line.WriteByte('\n')
	b.writing.Lock()
	defer b.writing.Unlock()
	if _, err := b.o.Out.Write(line.Bytes()); err != nil {
		b.stop()
	}
}
