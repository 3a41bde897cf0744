// Package connections puts the credentials of connections into the requests that programs make. The daemon holds the secrets; a program
// sees an answer without them: an echo is masked, an error names the connection and no secret. A secret is read at each use, so that a
// new one counts from the next request on, and access tokens of the old one are dropped.
//
// It knows nothing of programs, of prompts or of the REST interface. An echo is looked for in one pass over a body.
package connections

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
)

// Options configures a Service. Transport, KeyFile and Env are required.
type Options struct {
	Namespace agent.Namespace // whose connections they are
	// carries token requests, under the policy of fetches; follows no redirect
	Transport http.RoundTripper
	KeyFile   string // the identity that opens sealed secrets; made at the first one
	// KeyFile is the default one, in the data directory, where no link is followed
	OwnKey     bool
	SecretsDir string                           // holds the secrets that connections name by file; "": none may
	Env        func(string) (v string, ok bool) // the daemon's environment
}

// Store is what a Service reads.
type Store interface {
	ListConnections(ctx context.Context) ([]agent.Connection, error)
}

// A Service is a fetch.Connector. It may be used concurrently.
type Service struct {
	o     Options
	vault *vault
	store Store // set once by Use

	mu     sync.Mutex
	tokens map[string]*source // by connection; guarded by mu
}

// New returns a service.
func New(o Options) (*Service, error) {
	if o.Transport == nil || o.KeyFile == "" || o.Env == nil {
		return nil, errors.New("connections: Transport, KeyFile and Env are required")
	}
	return &Service{o: o, vault: &vault{path: o.KeyFile, strict: o.OwnKey}, tokens: map[string]*source{}}, nil
}

// Use has the connections come from the store. It is called once, before anything fetches.
func (s *Service) Use(store Store) { s.store = store }

// Seal encrypts a secret for the connection of that name. The errors are ErrBadKey and those of the file system.
func (s *Service) Seal(connection, secret string) ([]byte, error) {
	return s.vault.seal(sealed{s.o.Namespace, connection, secret})
}

// Problem says why the connection cannot be used now, "" where it can. It does not ask the API.
func (s *Service) Problem(c *agent.Connection) string {
	if _, err := s.secret(c); err != nil {
		return err.Error()
	}
	return ""
}

// readTimeout bounds how long a fetch waits for the store.
const readTimeout = 10 * time.Second

// Connect is part of fetch.Connector: of the connections that match the one with the most specific host, then the first by name.
func (s *Service) Connect(who fetch.Caller, method string, at *url.URL) fetch.Connection {
	all, err := s.list()
	if err != nil {
		return &use{service: s, c: agent.Connection{Name: "?", Methods: []string{method}}, err: err}
	}
	var best *agent.Connection
	var host fetch.HostPattern
	for i := range all {
		c := &all[i]
		if c.Auth.Type == agent.AuthURL || !c.Grants(who.Role) || !grants(c, method) {
			continue
		}
		if h, ok := mostSpecific(c, at); ok && (best == nil || h.Compare(host) > 0) { // by name already
			best, host = c, h
		}
	}
	if best == nil {
		return nil
	}
	return &use{service: s, c: *best}
}

// list returns all connections.
func (s *Service) list() ([]agent.Connection, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout) // a fetch has no context of its own here
	defer cancel()
	all, err := s.store.ListConnections(ctx)
	if err != nil {
		return nil, errors.New("the connections cannot be read")
	}
	return all, nil
}

func mostSpecific(c *agent.Connection, at *url.URL) (fetch.HostPattern, bool) {
	var matching []fetch.HostPattern
	for _, text := range c.Hosts {
		if p, err := fetch.ParseHost(text); err == nil && p.Matches(at) {
			matching = append(matching, p)
		}
	}
	if len(matching) == 0 {
		return fetch.HostPattern{}, false
	}
	return slices.MaxFunc(matching, fetch.HostPattern.Compare), true
}

// grants reports whether the connection grants the method. HEAD asks for what GET gives.
func grants(c *agent.Connection, method string) bool {
	return slices.Contains(c.Methods, method) || method == http.MethodHead && slices.Contains(c.Methods, http.MethodGet)
}

// source returns where the tokens of the connection come from. Another revision or another secret begins anew.
func (s *Service) source(c *agent.Connection, secret string) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := sourceKey{c.Revision, c.CreatedAt.UnixNano(), sha256.Sum256([]byte(secret))}
	if have := s.tokens[c.Name]; have != nil && have.key == at {
		return have
	}
	next := newSource(at, c, secret, s.o.Transport)
	s.tokens[c.Name] = next
	return next
}
