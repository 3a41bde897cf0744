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

// Public stands among TransportOptions.Allow for any public https address. A host of that name is written with its port.
const Public = "public"

// TransportOptions configures a Transport.
type TransportOptions struct {
	// hosts that may be reached: host, host:port or *.domain, which may be private or http, and Public; none: Public alone
	Allow   []string
	Timeout time.Duration // until the headers of an answer

	Resolver *net.Resolver // nil: the machine's
}

// A Transport sends single requests to where the policy allows: no proxy, no connection kept. Where a connection goes is
// checked on the address that the dialer is about to use, after resolution: a name cannot say one thing to the check and another
// to the connection. It may be used concurrently.
type Transport struct {
	rules  []hostRule
	public bool // any public https address may be reached, beside those of the rules
	base   *http.Transport
}

// dialTo is the context key under which the dialer finds whether the host is a named one.
type dialTo struct{}

// NewTransport returns a transport under the policy, or an error that names the rule which cannot be read.
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
		Proxy:                  nil, // the environment's proxy would make the address check pointless
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  o.Timeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true,
		DisableCompression:     true, // bodies are unpacked by package fetch, within their bounds
		ForceAttemptHTTP2:      false,
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper. It follows no redirect. An address that the policy does not allow is a *Refusal.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	named, err := t.permit(r.URL)
	if err != nil {
		return nil, err
	}
	return t.base.RoundTrip(r.WithContext(context.WithValue(r.Context(), dialTo{}, named)))
}

// Permit returns a *Refusal when the policy does not allow the address.
func (t *Transport) Permit(u *url.URL) error {
	_, err := t.permit(u)
	return err
}

// Scheme returns how addresses of the host begin, a pattern of connections: https://, http:// or, where either may be, http(s)://. Of a host that only
// this machine or its network knows, with a port, it is http://: certificates are rare there.
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

// Close drops what the transport keeps.
func (t *Transport) Close() { t.base.CloseIdleConnections() }

// permit says whether the policy lets programs fetch the address, and whether its host is a named one.
func (t *Transport) permit(u *url.URL) (named bool, err error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return false, deny("only http and https addresses can be fetched")
	}
	host, port := hostAndPort(u)
	switch {
	case host == "":
		return false, deny("the address has no host")
	case u.User != nil:
		return false, deny("an address must not hold a user or a password: set a header")
	case !isASCII(host):
		return false, deny("write the host in ASCII (punycode)")
	case strings.Contains(host, "*"): // in an effects manifest it would stand for all hosts of the domain
		return false, deny("the address has an asterisk in its host")
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
