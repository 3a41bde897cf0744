package mcp

import (
	"bytes"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// reads are the methods that change nothing. They need the scope Read.
var reads = []string{"tools/list", methodListen, "resources/list", "resources/read", "resources/templates/list",
	methodTaskGet, methodTaskResult, methodTaskList}

// Needs returns the scopes that a message needs: none for a handshake, Read to list, search or watch tools and to read
// files and tasks, Call to call a tool. Unknown methods and ambiguous messages need both.
func Needs(message []byte) []access.Scope {
	method := text(only(message, "method"))
	if method == "tools/call" && text(only(only(message, "params"), "name")) == listed {
		return []access.Scope{access.Read}
	}
	switch {
	case method == "initialize", method == "ping", method == "server/discover",
		strings.HasPrefix(method, "notifications/"):
		return nil
	case slices.Contains(reads, method):
		return []access.Scope{access.Read}
	case method == "tools/call", method == methodTaskCancel, method == methodTaskUpdate:
		return []access.Scope{access.Call}
	}
	return []access.Scope{access.Read, access.Call}
}

// Calls reports whether a message may run programs, and so counts as a concurrent call. Unknown methods count.
func Calls(message []byte) bool {
	method := text(only(message, "method"))
	return !slices.Contains(reads, method) && method != methodTaskCancel && method != methodTaskUpdate
}

// Lasts reports whether the reply to a message is a stream without a time limit.
func Lasts(message []byte) bool {
	method := text(only(message, "method"))
	return method == methodListen || method == methodTaskResult
}

// only returns the member of that name. It returns nil if there is none, or if another name differs only in case:
// parsers could disagree on which one counts.
func only(object []byte, name string) (value []byte) {
	alike := 0
	err := strict.Members(object, func(key, v []byte) error {
		if strings.EqualFold(string(key), name) {
			alike++
			value = bytes.Clone(v) // v aliases the scanner's memory
		}
		return nil
	})
	if alike != 1 || err != nil {
		return nil
	}
	return value
}

// text returns the text of a JSON string, or "".
func text(value []byte) string {
	s, _ := strict.String(value)
	return s
}

// Sessions returns the session ids that a tools/call names, in its arguments and in _meta.
func Sessions(message []byte) (ids []string) {
	if text(only(message, "method")) != "tools/call" {
		return nil
	}
	params := only(message, "params")
	for _, id := range []string{text(only(only(params, "arguments"), "session_id")),
		text(only(only(params, "_meta"), metaSession))} {
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}
