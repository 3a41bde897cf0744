package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Host is what the server asks of the interface that has received a request.
type Host struct {
	// what the request counts for counts until release; nil: nothing counts
	Hold func() (release func())
	// has room for a reply of n bytes kept until the request has ended; nil: there is always room
	Room func(n int64) (ok bool)
	// calls that run at other replicas; nil: there are none
	Elsewhere func(ctx context.Context) ([]agent.LogEntry, error)
}

type hostKey struct{}

// WithHost returns a context in which requests came by that host.
func WithHost(ctx context.Context, h Host) context.Context {
	return context.WithValue(ctx, hostKey{}, h)
}

func hostOf(ctx context.Context) Host {
	h, _ := ctx.Value(hostKey{}).(Host)
	return h
}

// copies is how often a reply is held: as a value, as a text in it, as JSON and as an event.
const copies = 4

// room has room kept for a reply with n bytes of content. A client that reads slowly has all of it held in memory.
func room(ctx context.Context, n int64) error {
	h := hostOf(ctx)
	if h.Room == nil || h.Room(copies*n) {
		return nil
	}
	return &jsonrpc.Error{Code: codeUnavailable, Message: "too many large replies wait to be read: try again later"}
}
