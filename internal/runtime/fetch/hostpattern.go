package fetch

import (
	"cmp"
	"net/url"
	"strings"
)

// A HostPattern names hosts that a credential is for: host, host:port or *.domain, which is all hosts below the domain. Without a port it is the one of
// the scheme alone: behind another one may be a server of somebody else.
type HostPattern struct{ rule hostRule }

// ParseHost reads a pattern.
func ParseHost(s string) (HostPattern, error) {
	r, err := parseHostRule(s)
	return HostPattern{r}, err
}

// Matches reports whether the pattern names the host of the address. The port of an address without one is its scheme's.
func (p HostPattern) Matches(u *url.URL) bool {
	host, port := hostAndPort(u)
	return (p.rule.port != "" || port == schemePorts[u.Scheme]) && p.rule.matches(host, port)
}

// Domain returns the domain of a *.domain pattern, "" of any other.
func (p HostPattern) Domain() string {
	domain, wide := strings.CutPrefix(p.rule.host, ".")
	if !wide {
		return ""
	}
	return domain
}

// Compare compares two patterns that match the same host. It is positive where p is the more specific one: a host more than a domain, a
// longer domain more than a shorter one, one with a port more than one without.
func (p HostPattern) Compare(q HostPattern) int { return cmp.Compare(p.weight(), q.weight()) }

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
