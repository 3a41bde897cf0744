package api

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/access"
)

// admit decides whether the request is answered at all. It sets the principal, and checks host, token, scope, origin
// and media type, in that order. It reads nothing of the body.
func (s *server) admit(w *reply, r *http.Request, needs access.Scope, body trait) error {
	if s.forwarded(r) {
		return s.admitForwarded(w, r, needs, body)
	}
	if s.o.Auth == nil {
		w.act(access.Local())
		if !s.localHost(r.Host) {
			return fault(codeHost, "the request names a host which is not this machine",
				"speak to localhost, 127.0.0.1 or [::1], or configure access tokens")
		}
	} else if needs != anyone {
		who, err := s.authenticate(w, r)
		if err != nil {
			return err
		}
		w.act(who)
		if err := w.needs(needs); err != nil {
			return err
		}
	}
	// against requests that a web page sends without its user's knowledge (CSRF)
	if s.origin != nil && s.origin.Check(r) != nil {
		return fault(codeCrossOrigin, "a web page of another origin sent the request", "")
	}
	return s.checkMedia(r, body)
}

// admitForwarded is admit for a request that another replica has forwarded. That replica has checked token, host and
// origin; this one takes the principal from its header.
func (s *server) admitForwarded(w *reply, r *http.Request, needs access.Scope, body trait) error {
	if needs != anyone {
		who, err := sentFor(r)
		if err != nil {
			return err
		}
		w.act(who)
		if err := w.needs(needs); err != nil {
			return err
		}
	}
	return s.checkMedia(r, body)
}

// localHost reports whether the host of a request names this machine. Refusing other names protects a local daemon
// from DNS rebinding by web pages.
func (s *server) localHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = canonicalHost(host)
	if s.hosts[host] {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// canonicalHost returns the host in lower case, without brackets and without a trailing dot.
func canonicalHost(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// needs returns nil if the principal has the scope, else a problem and the header WWW-Authenticate (RFC 6750).
func (w *reply) needs(scope access.Scope) error {
	if scope == byMessage || w.who.Scopes.Has(scope) {
		return nil
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="recurgentd", error="insufficient_scope", scope="`+scope.String()+
		`"`)
	p := fault(codeScope, "the token of "+strconv.Quote(w.who.Name)+" lacks the scope "+scope.String(), "")
	p.Meta = map[string]any{"missing": scope.String(), "scopes": w.who.Scopes.Names()}
	return p
}

// authenticate returns the principal of the request's token. An unknown or missing token is a problem with status
// 401; an authenticator that cannot decide returns its own error.
func (s *server) authenticate(w *reply, r *http.Request) (access.Principal, error) {
	token, ok := bearer(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", s.challenge(r, ""))
		return access.Principal{}, fault(codeUnauthenticated, "the request carries no access token", "")
	}
	who, err := s.o.Auth.Authenticate(r.Context(), token)
	if errors.Is(err, access.ErrUnknown) {
		w.Header().Set("WWW-Authenticate", s.challenge(r, `, error="invalid_token"`))
		return who, fault(codeUnauthenticated, whyUnknown(err), "")
	}
	return who, err
}
