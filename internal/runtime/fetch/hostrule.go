package fetch

import (
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
		return hostRule{}, fmt.Errorf("%q has no port number behind the colon", s)
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
