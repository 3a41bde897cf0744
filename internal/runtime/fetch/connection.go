package fetch

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Connector finds the Connection that adds a credential to a request. Its methods may be called concurrently.
type Connector interface {
	// Connect returns the connection for a request of the method to the address, or nil if there is none. It is called
	// again on every hop, so a credential never follows a redirect to a host that no connection names.
	Connect(who Caller, method string, at *url.URL) Connection
	// Named returns the connection of that name, whose credential is an address, and the address. Only the host may see
	// the address. The error states what a person or the program has to do, and does not contain the address.
	Named(who Caller, method, name string) (Connection, *url.URL, error)
}

// A Connection holds a credential for some hosts. Its methods may be called concurrently.
type Connection interface {
	// Name returns the name of the connection.
	Name() string
	// Grants reports whether requests of the method may go through the connection. Without a grant, programs may only
	// GET and HEAD.
	Grants(method string) bool
	// Sign adds the credential to the request, in a header or the query. Its error must not contain the credential. A
	// *Refusal keeps its kind, and any other error counts as a network error.
	Sign(ctx context.Context, r *http.Request) error
	// Renew reports whether a request that was answered 401 should be signed again and sent once more, because the
	// credential had expired and another one is available.
	Renew(ctx context.Context) bool
	// Mask replaces every echo of the credential in text. If ctx ends before a long text is scanned, it replaces the
	// whole text. The result may share memory with text.
	Mask(ctx context.Context, text []byte) []byte
	// IdempotencyHeader returns the name of the header that carries a key for each write, or "" if there is none.
	IdempotencyHeader() string
}

// A Caller describes on whose behalf a fetch is made, and what it may do.
type Caller struct {
	Owner                agent.Owner
	Role, Method, CallID string

	// End is the end of the call. Retries that could not begin before it are not waited for. Zero means no end.
	End    time.Time
	Guard  Guard   // nil means that only the policy decides
	Writes *Ledger // the ledger of the client's call; nil forbids writes
}
