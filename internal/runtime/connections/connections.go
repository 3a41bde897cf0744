// Package connections adds the credentials of connections to requests made by programs. The daemon holds the secrets,
// and programs never see them: echoes in responses are masked, and errors name the connection only. A secret is read at
// each use. A new one therefore applies from the next request on, and access tokens obtained with the old one are
// dropped.
//
// The package knows nothing of programs, prompts or the REST interface. Masking takes one pass over a body.
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
	Namespace agent.Namespace // the namespace of the connections
	// Transport carries token requests, under the policy for fetches. It must not follow redirects.
	Transport http.RoundTripper
	KeyFile   string // the age identity for sealed secrets; created when first needed
	// OwnKey means that KeyFile is the default file in the data directory, where links are not followed.
	OwnKey bool
	// SecretsDir contains the secrets that connections refer to by file; "" allows none.
	SecretsDir string
	Env        func(string) (v string, ok bool) // the daemon's environment
}

// Store provides the connections.
type Store interface {
	ListConnections(ctx context.Context) ([]agent.Connection, error)
}

// A Service is a fetch.Connector for one namespace. It may be used concurrently.
type Service struct {
	o     Options
	vault *vault
	store Store // set once by Use

	mu     sync.Mutex
	tokens map[string]*source // by connection; guarded by mu
}

// New returns a service. Call Use before it serves fetches.
func New(o Options) (*Service, error) {
	if o.Transport == nil || o.KeyFile == "" || o.Env == nil {
		return nil, errors.New("connections: Transport, KeyFile and Env are required")
	}
	return &Service{o: o, vault: &vault{path: o.KeyFile, strict: o.OwnKey}, tokens: map[string]*source{}}, nil
}

// Use sets the store of the connections. It must be called once, before the first fetch.
func (s *Service) Use(store Store) { s.store = store }

// Seal encrypts a secret for the connection with that name. It returns ErrBadKey if the key file is unusable, or an
// error of the file system.
func (s *Service) Seal(connection, secret string) ([]byte, error) {
	return s.vault.seal(sealed{s.o.Namespace, connection, secret})
}

// Problem returns the reason why the connection cannot be used now, or "". It does not contact the API.
func (s *Service) Problem(c *agent.Connection) string {
	if _, err := s.secret(c); err != nil {
		return err.Error()
	}
	return ""
}

// readTimeout bounds how long a fetch waits for the store.
const readTimeout = 10 * time.Second

// Connect implements fetch.Connector. Of the matching connections it returns the one with the most specific host; of
// several, the first by name. It returns nil if none matches.
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
		// The list is sorted by name, so the first one of equals wins.
		if h, ok := mostSpecific(c, at); ok && (best == nil || h.Compare(host) > 0) {
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
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout) // fetch.Connector passes no context
	defer cancel()
	all, err := s.store.ListConnections(ctx)
	if err != nil {
		return nil, errors.New("the connections cannot be read from the store")
	}
	return all, nil
}

// mostSpecific returns the most specific of the connection's hosts that match the address; ok is false if none does.
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

// grants reports whether the connection grants the method. A grant of GET includes HEAD.
func grants(c *agent.Connection, method string) bool {
	return slices.Contains(c.Methods, method) || method == http.MethodHead && slices.Contains(c.Methods, http.MethodGet)
}

// source returns the token source of the connection. A changed revision or secret gets a new one.
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
