package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A message is one JSON-RPC message, or a batch. A response has no method.
type message struct {
	id     json.RawMessage // nil for a notification
	method string
	params json.RawMessage
	data   []byte // the whole message
	batch  bool   // a list of messages, which the daemon splits
}

// nullID is the id in a reply to a message whose id could not be read.
var nullID = json.RawMessage("null")

// readMessage parses a message. A fault describes an invalid one; the reply to it has the id of m, or null if that is
// nil.
func readMessage(data []byte) (m message, fault *jsonrpc.Error) {
	var in struct {
		Version *string         `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  json.RawMessage `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	data = bytes.TrimSpace(data)
	var value json.RawMessage
	if err := json.Unmarshal(data, &value); err != nil {
		return m, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the message is not JSON: " + err.Error()}
	}
	m.data = data
	if m.batch = data[0] == '['; m.batch {
		if n := len(elements(data)); n == 0 || n > maxBatch {
			fault = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
				Message: fmt.Sprintf("a batch must have 1 to %d messages, not %d", maxBatch, n)}
		}
		return m, fault
	}
	if data[0] != '{' {
		return m, notAnObject()
	}
	err := json.Unmarshal(data, &in)
	if string(in.ID) == "null" && in.Method == nil && in.Error != nil {
		in.ID = nil // an error about a message whose id could not be read
	}
	if len(in.ID) > 0 && !m.identify(in.ID) {
		return m, invalidMessage("id must be a string or a whole number between -2^53 and 2^53")
	}
	if err != nil || in.Version == nil || *in.Version != "2.0" {
		return m, invalidMessage(`jsonrpc must be "2.0"`)
	}
	switch {
	case in.Method == nil && (in.Result != nil || in.Error != nil):
		return m, nil
	case in.Method == nil || json.Unmarshal(in.Method, &m.method) != nil || m.method == "":
		return m, invalidMessage("method must be a string")
	}
	if m.params = in.Params; len(m.params) > 0 && m.params[0] != '{' && string(m.params) != "null" {
		return m, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params must be an object"}
	}
	return m, nil
}

// invalidMessage is the error for JSON that is not a message.
func invalidMessage(why string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the message is not a JSON-RPC message: " + why}
}

// identify sets the id, and reports whether a response can carry exactly that id. The SDK decodes a number as float64
// and truncates it, so fractions and large numbers cannot.
func (m *message) identify(id json.RawMessage) bool {
	if kind := id[0]; kind == '"' && utf8.Valid(id) || kind == '-' || kind >= '0' && kind <= '9' {
		m.id = id
	}
	var read any
	if json.Unmarshal(id, &read) != nil {
		return false
	}
	switch v := read.(type) {
	case string:
		return !strings.ContainsRune(v, utf8.RuneError) // U+FFFD replaces invalid text, which is lost
	case float64:
		return v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return false
}

// errorMessage returns a response with the error. A nil id becomes null.
func errorMessage(id json.RawMessage, e *jsonrpc.Error) []byte {
	if id == nil {
		id = nullID
	}
	return agent.Encoded(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, e})
}

// WriteError answers an HTTP request with a JSON-RPC error. data may be nil. A nil id becomes null, which means that
// the message is unknown.
func WriteError(w http.ResponseWriter, status int, id json.RawMessage, message string, data json.RawMessage) {
	writeError(w, status, id, &jsonrpc.Error{Code: codeOf(status), Message: message, Data: data})
}

// writeError writes a JSON-RPC error as the whole reply.
func writeError(w http.ResponseWriter, status int, id json.RawMessage, e *jsonrpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(errorMessage(id, e), '\n')) // a write fails only when the client has gone
}

// codeOf returns the JSON-RPC code for an HTTP status.
func codeOf(status int) int64 {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusMisdirectedRequest:
		return jsonrpc.CodeInvalidRequest
	case http.StatusInternalServerError:
		return jsonrpc.CodeInternalError
	}
	return codeUnavailable
}

// MessageID returns the id of a message, or nil if it has none or it cannot be read.
func MessageID(data []byte) json.RawMessage {
	m, _ := readMessage(data)
	return m.id
}
