package fetch

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Public is an entry of TransportOptions.Allow that permits any public https address. A host of that name must be
// written with its port.
const Public = "public"

// TransportOptions configures a Transport.
type TransportOptions struct {
	// Allow lists the hosts that may be reached: host, host:port or *.domain, which may be private or http, and Public.
	// An empty list means Public alone.
	Allow   []string
	Timeout time.Duration // until the headers of an answer have arrived

	Resolver *net.Resolver // nil means the machine's resolver
}

// A Transport sends single requests to where the policy allows, without a proxy and without keeping connections. The
// destination is checked by the address that the dialer is about to use, after resolution, so a name cannot resolve to
// one address for the check and to another for the connection. It may be used concurrently.
type Transport struct {
	rules  []hostRule
	public bool // any public https address may be reached, in addition to those of the rules
	base   *http.Transport
}

// dialTo is the context key under which the dialer finds whether a rule names the host.
type dialTo struct{}

// NewTransport returns a Transport for the policy, or an error that names the invalid rule.
func NewTransport(o TransportOptions) (*Transport, error) {
	t := &Transport{public: len(o.Allow) == 0}
	for _, h := range o.Allow {
		if h == Public {
			t.public = true
			continue
		}
		r, err := parseHostRule(h)
		if err != nil {
			return nil, err
		}
		t.rules = append(t.rules, r)
	}
	guard := publicOnly()
	dialer := &net.Dialer{Timeout: 10 * time.Second, Resolver: o.Resolver,
		ControlContext: func(ctx context.Context, network, address string, c syscall.RawConn) error {
			if named, _ := ctx.Value(dialTo{}).(bool); named {
				return nil
			}
			return guard.Safe(network, address, c)
		}}
	t.base = &http.Transport{
		Proxy:                  nil, // a proxy of the environment would bypass the address check
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  o.Timeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true,
		DisableCompression:     true, // package fetch unpacks bodies, within bounds
		ForceAttemptHTTP2:      false,
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper. It follows no redirect. If the policy does not allow the address, the error
// is a *Refusal.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	named, err := t.permit(r.URL)
	if err != nil {
		return nil, err
	}
	return t.base.RoundTrip(r.WithContext(context.WithValue(r.Context(), dialTo{}, named)))
}

// Permit returns a *Refusal if the policy does not allow the address, otherwise nil.
func (t *Transport) Permit(u *url.URL) error {
	_, err := t.permit(u)
	return err
}

// Scheme returns the scheme of addresses of the host, a pattern of connections: https://, http:// or, if both are
// allowed, http(s)://. For a local host with a port it returns http:// if that is allowed, because local servers rarely
// have certificates.
func (t *Transport) Scheme(host string) string {
	p, err := ParseHost(host)
	if err != nil {
		return "https://"
	}
	may := func(scheme string) bool {
		u := &url.URL{Scheme: scheme, Host: strings.Replace(host, "*.", "any.", 1)}
		return p.Matches(u) && t.Permit(u) == nil && p.rule.port != schemePorts[otherScheme[scheme]]
	}
	switch local := p.rule.port != "" && localHost(p.rule.host); {
	case !may("http"):
		return "https://"
	case !may("https") || local:
		return "http://"
	}
	return "http(s)://"
}

var otherScheme = map[string]string{"http": "https", "https": "http"}

func localHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || ip.IsPrivate()) || err != nil && !strings.Contains(host, ".")
}

// Close closes idle connections.
func (t *Transport) Close() { t.base.CloseIdleConnections() }

// permit returns a *Refusal if the policy does not allow the address, and reports whether a rule names its host.
func (t *Transport) permit(u *url.URL) (named bool, err error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return false, deny("only http and https addresses can be fetched")
	}
	host, port := hostAndPort(u)
	switch {
	case host == "":
		return false, deny("the address has no host")
	case u.User != nil:
		return false, deny("the address must not have a user or a password: set a header instead")
	case !isASCII(host):
		return false, deny("write the host in ASCII (punycode)")
	case strings.Contains(host, "*"): // in an effects manifest it would mean all hosts of the domain
		return false, deny("the host contains an asterisk")
	}
	for _, r := range t.rules {
		if r.matches(host, port) {
			return true, nil
		}
	}
	if !t.public {
		return false, deny("%s is not among the hosts that this daemon may fetch", wire.BoundText([]byte(u.Host), 200))
	}
	if cloudHost(host) {
		return false, deny("the host's address is not public")
	}
	if u.Scheme != "https" {
		return false, deny("only https addresses can be fetched, unless the operator names the host")
	}
	return false, nil
}
