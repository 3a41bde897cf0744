package api

import (
	"context"
	"net/http"

	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// Runtime is what the interface needs from one namespace, resource by resource. Its methods may be called concurrently.
// They return store.ErrNotFound for what does not exist, and serve every owner: the table of operations decides who may
// call them (see subject). Packages runtime, operator, predict, files and spend implement and document them.
type Runtime interface {
	Sessions
	Calls
	Events
	Verdicts
	Tools
	Artifacts
	Examples
	Effects
	Files
	Connections
	Predictions
	Advice
	Reports
	Audit
	Maintenance

	Functions() *catalog.Catalog // the tools as agents see them
	// MCP returns the handler of MCP, or nil if MCP is off. mcp.WithPrincipal sets the principal in the context.
	MCP() http.Handler
	Holdings(ctx context.Context) (*Holdings, error)
	Erased() context.Context // ends when the namespace is deleted
	// Settled waits until everything that was read so far is durable.
	Settled() error
	Version() operator.VersionInfo
}
