package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Headers and members of the protocol.
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

// header returns what the protocol's HTTP wants of a message beside its text: in the newest version what the message says, in older ones what
// initialize has settled.
func (b *bridge) header(m message) http.Header {
	var p struct {
		Name   string         `json:"name"`
		URI    string         `json:"uri"`
		TaskID string         `json:"taskId"`
		Meta   map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(m.params, &p) // the daemon says what is wrong with it
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

// post sends a message to the daemon.
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

// answer passes on what the daemon says to a request, up to its response, which is the last. The error is to be the response.
func (b *bridge) answer(ctx context.Context, asked message, line []byte, header http.Header,
	deliver func(message []byte, last bool)) *jsonrpc.Error {
	return b.each(ctx, line, header, func(message []byte) (done bool) {
		m, _ := readMessage(message)
		if m.id == nil && m.method == "" && !asked.batch { // an error that was found before the id was read
			message = withID(message, asked.id)
		}
		last := m.method == "" && !asked.batch
		deliver(message, last)
		return last
	})
}

// withID returns the response with the id in the place of its own.
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
		return response // not reached: its parts are JSON
	}
	return out
}

// each sends a request and passes every message that comes of it to take, until that has the response. The error says why there is none.
func (b *bridge) each(ctx context.Context, request []byte, header http.Header,
	take func(message []byte) (done bool)) *jsonrpc.Error {
	resp, err := b.post(ctx, request, header)
	if err != nil {
		return &jsonrpc.Error{Code: codeUnavailable, Message: "the daemon at " + b.o.URL + " does not answer: " +
			err.Error()}
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		in := &events{in: bufio.NewReader(resp.Body), most: maxEvent}
		for {
			message, err := in.next()
			if err != nil {
				return &jsonrpc.Error{Code: codeUnavailable, Message: "the daemon at " + b.o.URL +
					" has not answered to the end: " + err.Error()}
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
