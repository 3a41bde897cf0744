package api

import (
	"context"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cluster"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// handler answers a request or returns an error, which route turns into a problem detail. A handler that has begun to
// write returns nil.
type handler func(w *reply, r *http.Request) error

// A trait changes how route treats an operation. Without traits, an operation takes no body and returns soon.
type trait int

const (
	jsonBody     trait = iota // requires a body of application/json
	patchBody                 // requires one of application/merge-patch+json or application/json
	optionalBody              // may have a body of application/json
	streaming                 // lasts as long as its client does; a GET counts as a stream
	// runs programs or asks a model: counts among the calls of its principal
	calling
	audited // may write an audit entry, whose id the reply carries
)

// statusClientGone is the status in metrics and log of a request whose client hung up. It is never sent.
const statusClientGone = 499

// route wraps a handler with everything that is common to all: metrics, request id, common headers, admission,
// namespace, errors and panics. Deferred calls run in reverse, so the request is counted before its holdings are
// released.
func (s *server) route(o operation, h handler, traits ...trait) http.HandlerFunc {
	// looked up once per route, not per request
	m := s.o.Metrics.Route(o.pattern, o.method, slices.Contains(traits, streaming))
	calls, body := false, trait(-1)
	lasts := slices.Contains(traits, streaming)
	streams := lasts && o.method == http.MethodGet
	for _, t := range traits {
		switch t {
		case streaming, audited:
		case calling:
			calls = true
		default:
			body = t
		}
	}
	// the order matters: cheap checks that need no body come first
	return func(hw http.ResponseWriter, r *http.Request) {
		start := time.Now()
		m.Begin()
		w := &reply{ResponseWriter: hw, stall: s.o.Stall, held: held{shares: s.shares}}
		defer w.held.release()
		defer s.finish(w, r, m, o.pattern, start)
		w.extend() // for "100 Continue"
		s.identify(w, r)
		if err := s.admit(w, r, o.needs, body); err != nil {
			s.fail(w, r, err)
			return
		}
		// limits are per owner, so the principal must be known
		if err := s.admitFairly(w, calls, streams); err != nil {
			s.fail(w, r, err)
			return
		}
		// only now: a refused request must not open a namespace
		if o.needs != anyone {
			if err := s.enterNamespace(w, r); err != nil {
				s.fail(w, r, err)
				return
			}
			defer w.leave()
			if lasts {
				until, end := w.untilErased(r)
				defer end()
				r = until
			}
		}
		if streams {
			var done func()
			r, done = s.whileTokenLasts(w, r)
			defer done()
		}
		if o.leaves {
			w.left = &store.Receipt{}
			r = r.WithContext(store.WithReceipt(r.Context(), w.left))
		}
		if err := s.serve(h, w, r, streams); err != nil {
			s.fail(w, r, err)
		}
	}
}

// finish counts and logs the request. If the handler panicked, it answers with an internal error, but passes
// http.ErrAbortHandler on to net/http.
func (s *server) finish(w *reply, r *http.Request, m *telemetry.Route, pattern string, start time.Time) {
	if v := recover(); v != nil {
		if v == http.ErrAbortHandler { // net/http compares it the same way
			m.End(statusClientGone, time.Since(start))
			panic(v)
		}
		s.log.Error().Interface("panic", v).Str("request_id", w.requestID).Str("route", pattern).Bytes("stack",
			debug.Stack()).Msg("handler panicked")
		if w.status == 0 {
			s.write(w, r, fault(codeInternal, "", ""))
		}
	}
	w.extend() // for what net/http has still buffered
	took := time.Since(start)
	m.End(w.status, took)
	if e := s.log.Debug(); e.Enabled() {
		e.Str("method", r.Method).Str("route", pattern).Str("path", r.URL.Path).Int("status", w.status).Dur("took",
			took).
			Str("request_id", w.requestID).Str("owner", w.owner).Msg("request")
	}
}

// identify sets the request id and the headers that all replies have. It removes a client's principalHeader.
func (s *server) identify(w *reply, r *http.Request) {
	h := w.Header()
	if given := r.Header["X-Request-Id"]; len(given) == 1 && goodRequestID(given[0]) {
		w.requestID, h["X-Request-Id"] = given[0], given
	} else {
		w.requestID = s.requestPrefix + strconv.FormatUint(s.requests.Add(1), 36)
		w.id[0] = w.requestID
		h["X-Request-Id"] = w.id[:]
	}
	h["Cache-Control"] = s.fixed.noStore
	h["X-Content-Type-Options"] = s.fixed.noSniff
	if s.o.Cluster != nil {
		h[replicaHeader] = s.o.Cluster.Header()
		if !cluster.Forwarded(r.Context()) {
			delete(r.Header, principalHeader)
		}
	}
}

// goodRequestID reports whether a client's request id can be echoed safely in headers and logs.
func goodRequestID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// checkMedia checks the headers of a body: size, encoding and media type.
func (s *server) checkMedia(r *http.Request, body trait) error {
	if body < 0 || body == optionalBody && r.ContentLength == 0 {
		return nil
	}
	if r.ContentLength > s.o.MaxBody {
		return s.tooLarge()
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return fault(codeMedia, "the body is encoded as "+strconv.Quote(coding),
			"send it as it is, without Content-Encoding")
	}
	given := r.Header.Get("Content-Type")
	if given == "application/json" {
		return nil // the common case needs no parsing
	}
	media, params, err := mime.ParseMediaType(given)
	charset, named := params["charset"]
	switch {
	case err != nil, media != "application/json" && (body != patchBody || media != "application/merge-patch+json"),
		named && !strings.EqualFold(charset, "utf-8"):
		hint := "send the header Content-Type: application/json"
		if body == patchBody {
			hint += " (or application/merge-patch+json)"
		}
		return fault(codeMedia, "the body's type "+strconv.Quote(given)+" is not JSON in UTF-8", hint)
	}
	return nil
}

// param returns a parameter of the path. chi matches the raw path if there is one, so that an escaped slash is not a
// separator. The parameter is then still escaped.
func param(r *http.Request, name string) string {
	v := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return v
	}
	plain, err := url.PathUnescape(v)
	if err != nil {
		return v // not reached: net/url has parsed the same escapes
	}
	return plain
}

// nameParam returns a role or a method from the path, in normal form. PUT, which may create the name, is held to the
// rules for new names; other methods accept any stored name.
func nameParam(r *http.Request, field string) (string, error) {
	name, check := param(r, field), agent.CheckStoredName
	if r.Method == http.MethodPut {
		check = agent.CheckName
	}
	if r.Context().Value(asGiven{}) == nil {
		name = agent.NormalForm(name)
	}
	if err := check(field, name); err != nil {
		var ne *agent.NameError
		errors.As(err, &ne)
		return "", fault(codeName, "the "+err.Error(),
			"percent-encode the name in the path; a slash cannot be part of it").in("path:"+field, ne.Reason)
	}
	return name, nil
}

// asGiven is a context key. It marks a request whose names are taken from the path without normalization.
type asGiven struct{}

// earlierName wraps a handler. If a GET or DELETE finds nothing under the normalized name, it is repeated with the name
// as given: earlier versions stored names without normalization.
func earlierName(h handler) handler {
	return func(w *reply, r *http.Request) error {
		err := h(w, r)
		if err == nil || r.Method != http.MethodGet && r.Method != http.MethodDelete ||
			agent.NormalForm(r.URL.Path) == r.URL.Path || problemOf(err).Status != http.StatusNotFound {
			return err
		}
		return h(w, r.WithContext(context.WithValue(r.Context(), asGiven{}, true)))
	}
}

// idParam returns an id from the path, and whether it is well-formed.
func idParam(r *http.Request, field string) (string, bool) {
	id := param(r, field)
	if !goodID(id) {
		return "", false
	}
	return id, true
}

// goodID reports whether a text can be an id of the daemon.
func goodID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// clientGone reports whether err was caused by the client hanging up.
func clientGone(r *http.Request, err error) bool {
	return errors.Is(err, context.Canceled) && r.Context().Err() != nil
}

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
				"use localhost, 127.0.0.1 or [::1], or configure access tokens")
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
