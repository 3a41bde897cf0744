// Package api is the REST interface: it decodes requests, calls the runtime, and encodes replies. A tool's failure is an
// ordinary outcome in a reply of status 200. A protocol fault is a problem detail (RFC 9457) with a stable code, a hint
// that the client can act on and, for a faulty body, JSON pointers into it. A request that is refused here has written
// nothing.
//
// Input is bounded and read strictly (package strict), names are checked before they are used, and where no tokens guard
// the daemon, only requests that name this machine as their host are answered. Only this package knows status codes. It
// knows nothing of stores, runners or models.
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

// server answers requests. Its fields are set once by New.
type server struct {
	o       Options
	log     zerolog.Logger
	hosts   map[string]bool
	origin  *http.CrossOriginProtection // nil: pages of every origin may ask
	fixed   fixedHeaders
	replies *replies
	shares  *shares

	table *table // of operations

	// made when it is first asked for: most daemons never are, and it would be a third of their start
	docs func() (docsPage, error)

	console *ui.Console

	started       time.Time
	requestPrefix string // of request ids made here
	requests      atomic.Uint64
}

// fixedHeaders are header values, and an end, that every reply shares, so that setting them allocates nothing.
type fixedHeaders struct {
	noStore, noSniff, json []string
	ok, failed             []string // Recurgent-Outcome
	newline                []byte
}

// New returns the handler of the whole interface.
func New(o Options) (http.Handler, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	return crossOrigin(s.table.router, o.Origins), nil
}

func newServer(o Options) (*server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
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
