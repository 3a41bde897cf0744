package fetch

import (
	"cmp"
	"net/url"
	"strings"
)

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
