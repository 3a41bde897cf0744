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
