package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Host is the interface that received a request, as far as the server needs it. Nil functions are allowed.
type Host struct {
	// Hold takes over what the request counts against limits, until release is called; nil means that nothing counts
	Hold func() (release func())
	// Room reserves space for a reply of n bytes until the request ends; nil means that there is always space
	Room func(n int64) (ok bool)
	// Elsewhere returns the calls that run at other replicas; nil means that there are none
	Elsewhere func(ctx context.Context) ([]agent.LogEntry, error)
}

type hostKey struct{}

// WithHost returns a context that carries the host of its requests.
func WithHost(ctx context.Context, h Host) context.Context {
	return context.WithValue(ctx, hostKey{}, h)
}

// hostOf returns the host of the context. Without one it returns the zero Host.
func hostOf(ctx context.Context) Host {
	h, _ := ctx.Value(hostKey{}).(Host)
	return h
}

// copies is how many copies of a reply are in memory: as a value, as text within it, as JSON and as an event.
const copies = 4

// room reserves space for a reply with n bytes of content, since a slow client keeps all of it in memory. The error
// says that there is none.
func room(ctx context.Context, n int64) error {
	h := hostOf(ctx)
	if h.Room == nil || h.Room(copies*n) {
		return nil
	}
	return &jsonrpc.Error{Code: codeUnavailable, Message: "too many large replies wait to be read: try again later"}
}
