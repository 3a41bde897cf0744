package fetch

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Connector finds the connection that puts a credential into a request. It may be called concurrently.
type Connector interface {
	// Connect returns the connection for a request of the method to the address, nil for none. It is asked on every
	// hop anew: a credential never follows a redirect to where no connection names the host.
	Connect(who Caller, method string, at *url.URL) Connection
	// Named returns the connection of that name whose credential is an address, and the address, which nobody but the host may see. The error
	// says what a person or the program has to do, and holds no address.
	Named(who Caller, method, name string) (Connection, *url.URL, error)
}

// A Connection holds a credential for some hosts. It may be used concurrently.
type Connection interface {
	Name() string
	// Grants reports whether requests of the method may go through the connection: without such a grant programs may
	// only GET and HEAD.
	Grants(method string) bool
	// Sign puts the credential into the request, in a header or the query. Its error must not hold the credential; a
	// *Refusal keeps its kind, any other error is one of the network.
	Sign(ctx context.Context, r *http.Request) error
	// Renew reports whether a request that was answered 401 is worth sending once more, signed anew: the credential
	// had expired and another one can be had.
	Renew(ctx context.Context) bool
	// Mask replaces every echo of the credential, or a long text where ctx ends before it is looked through. The result may share memory with text.
	Mask(ctx context.Context, text []byte) []byte
	// IdempotencyHeader names the header that carries a key for each write, "" for none.
	IdempotencyHeader() string
}

// A Caller is whose program asks for a fetch, and what it may do.
type Caller struct {
	Owner                agent.Owner
	Role, Method, CallID string

	End    time.Time // of the call: a retry that could not begin before it is not waited for; zero for none
	Guard  Guard     // nil: the policy alone decides
	Writes *Ledger   // of the client's call; nil: nothing may be written
}
