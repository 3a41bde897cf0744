// Package api is the REST interface: it decodes requests, calls the runtime, and encodes replies. A failed tool is an
// ordinary outcome: the reply has status 200 and reports it. A protocol fault is a problem detail (RFC 9457) with a
// stable code, a hint that the client can act on and, for an invalid body, JSON pointers into it. A request that this
// package refuses has written nothing.
//
// Bodies are bounded and read strictly (package strict), and names are checked before use. Without access tokens, the
// daemon answers only requests whose Host header names this machine. Only this package knows status codes. It knows
// nothing of stores, runners or models.
package api

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/ui"
)

// server answers requests. New sets its fields once; handlers run concurrently and only read them.
type server struct {
	o      Options
	log    zerolog.Logger
	hosts  map[string]bool
	origin *http.CrossOriginProtection // nil: pages of every origin may send requests
	fixed  fixedHeaders
	// limits of large replies and of what owners hold
	replies *replies
	shares  *shares

	table *table // of operations, set by routes

	// built on the first request: most daemons never serve it, and building it would take a third of their start
	docs func() (docsPage, error)

	console *ui.Console

	started       time.Time
	requestPrefix string        // of the request ids that this server generates
	requests      atomic.Uint64 // number of request ids generated so far
}

// fixedHeaders are header values, and the final newline, that all replies share. Sharing them saves an allocation per
// header.
type fixedHeaders struct {
	noStore, noSniff, json []string
	ok, failed             []string // Recurgent-Outcome
	newline                []byte
}

// New returns the handler of the whole interface. It returns an error for invalid Options and for an invalid table of
// operations. The handler may be used concurrently.
func New(o Options) (http.Handler, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	return crossOrigin(s.table.router, o.Origins), nil
}

// newServer is New without the headers for pages of other origins. Tests use it to reach the table of operations.
func newServer(o Options) (*server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	// clients take the server's address from the document
	if o.PublicURL != "" {
		var err error
		if o.OpenAPI, err = withServer(o.OpenAPI, o.PublicURL); err != nil {
			return nil, err
		}
	}
	s := &server{o: o, started: o.Now(), log: o.Logger, origin: http.NewCrossOriginProtection(),
		hosts:   map[string]bool{"localhost": true},
		replies: newReplies(o.MaxReplies, replyTurn), shares: newShares(o),
		fixed: fixedHeaders{noStore: []string{"no-store"}, noSniff: []string{"nosniff"},
			json: []string{"application/json"},
			ok:   []string{agent.StatusOK}, failed: []string{agent.StatusError}, newline: []byte("\n")}}
	s.docs = sync.OnceValues(func() (docsPage, error) { return newDocsPage(o.OpenAPI) })
	var err error
	if s.console, err = ui.New(); err != nil {
		return nil, err
	}
	for _, h := range o.Hosts {
		s.hosts[canonicalHost(h)] = true
	}
	if err := s.trust(o.Origins); err != nil {
		return nil, err
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	s.requestPrefix = "req_" + hex.EncodeToString(b[:]) + "_"
	s.table = s.routes()
	return s, s.table.err
}
