package fetch

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// A hostRule names hosts: "host", "host:port" or "*.domain".
type hostRule struct {
	host string // lower case; ".domain" for "*.domain"
	port string // "" means any
}

// parseHostRule parses a rule. Hosts are compared in ASCII lower case without a trailing dot.
func parseHostRule(s string) (hostRule, error) {
	r := hostRule{host: strings.ToLower(strings.TrimSpace(s))}
	if h, p, err := net.SplitHostPort(r.host); err == nil {
		r.host, r.port = h, p
	} else {
		r.host = strings.Trim(r.host, "[]")
	}
	r.host = strings.TrimSuffix(r.host, ".")
	if strings.HasPrefix(r.host, "*.") {
		r.host = r.host[1:]
	}
	if _, err := strconv.ParseUint(r.port, 10, 16); r.port != "" && err != nil {
		return hostRule{}, fmt.Errorf("%q has no port number after the colon", s)
	}
	if r.host == "" || r.host == "." || strings.ContainsAny(r.host, "*/@ ") || !isASCII(r.host) {
		return hostRule{}, fmt.Errorf("%q is not host, host:port or *.domain", s)
	}
	return r, nil
}

func (r hostRule) matches(host, port string) bool {
	if r.port != "" && r.port != port {
		return false
	}
	if strings.HasPrefix(r.host, ".") {
		return strings.HasSuffix(host, r.host) && len(host) > len(r.host)
	}
	return host == r.host
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

var schemePorts = map[string]string{"http": "80", "https": "443"}

// hostAndPort returns the host in the form that rules use, and the port, by default that of the scheme.
func hostAndPort(u *url.URL) (host, port string) {
	host = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	port = u.Port()
	if port == "" {
		port = schemePorts[u.Scheme]
	}
	return host, port
}

// A HostPattern names hosts for which a credential is meant: host, host:port or *.domain, which means all hosts below
// the domain. Without a port it matches only the default port of the scheme: another port may belong to another server.
type HostPattern struct{ rule hostRule }

// ParseHost parses a pattern.
func ParseHost(s string) (HostPattern, error) {
	r, err := parseHostRule(s)
	return HostPattern{r}, err
}

// Matches reports whether the pattern names the host of the address. An address without a port has that of its scheme.
func (p HostPattern) Matches(u *url.URL) bool {
	host, port := hostAndPort(u)
	return (p.rule.port != "" || port == schemePorts[u.Scheme]) && p.rule.matches(host, port)
}

// Domain returns the domain of a *.domain pattern, or "" for any other.
func (p HostPattern) Domain() string {
	domain, wide := strings.CutPrefix(p.rule.host, ".")
	if !wide {
		return ""
	}
	return domain
}

// Compare compares two patterns that match the same host. It is positive if p is more specific: a host is more specific
// than a domain, a longer domain than a shorter one, and a pattern with a port than one without.
func (p HostPattern) Compare(q HostPattern) int { return cmp.Compare(p.weight(), q.weight()) }

// weight orders patterns: a host outweighs every domain, then the length counts, then a port.
func (p HostPattern) weight() int {
	w := 2 * len(p.rule.host)
	if p.Domain() == "" {
		w += maxURL
	}
	if p.rule.port != "" {
		w++
	}
	return w
}
