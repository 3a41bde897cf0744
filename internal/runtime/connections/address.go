package connections

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
)

// Named implements fetch.Connector. It returns the connection of type url with that name, and its secret address. The
// error is a *fetch.Refusal.
func (s *Service) Named(who fetch.Caller, method, name string) (fetch.Connection, *url.URL, error) {
	all, err := s.list()
	if err != nil {
		return nil, nil, &fetch.Refusal{Kind: fetch.KindConnection, Message: err.Error()}
	}
	i := slices.IndexFunc(all, func(c agent.Connection) bool { return c.Name == name && c.Grants(who.Role) })
	if i < 0 {
		return nil, nil, denied("there is no connection %q for the role %s", name, who.Role)
	}
	c := &all[i]
	switch {
	case c.Auth.Type != agent.AuthURL:
		return nil, nil, denied("the connection %q is not of the type url: request an address of %s, and the daemon adds the credential", name, strings.Join(c.Hosts, ", "))
	case !grants(c, method):
		return nil, nil, denied("the connection %q does not grant %s. A person can change that: recurgentd connections set %s --method %s", name, method, name, method)
	}
	u := &use{service: s, c: *c}
	secret, err := s.secret(c)
	if err != nil {
		return nil, nil, u.refuse(err)
	}
	at, err := url.Parse(secret) // checked by s.secret
	if err != nil {
		return nil, nil, u.refuse(errors.New("its secret is not an address"))
	}
	u.remember(secret, "")
	return u, at, nil
}

// denied returns the refusal of a request that the program may not make.
func denied(format string, args ...any) error {
	return &fetch.Refusal{Kind: fetch.KindDenied, Message: fmt.Sprintf(format, args...)}
}

// CheckAddress returns an *agent.InputError if the secret cannot be the connection's address. The error does not
// contain the secret.
func CheckAddress(c *agent.Connection, secret string) error {
	if why := unfitAddress(c, secret); why != "" {
		return invalid("/auth/secret", why, "the whole address, such as https://hooks.example.org/services/...")
	}
	return nil
}

// unfitAddress returns the reason why the secret cannot be the connection's address, or "".
func unfitAddress(c *agent.Connection, secret string) string {
	at, err := url.Parse(secret)
	switch {
	case err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Hostname() == "":
		return "is not an address of https, which it has to be where the type is url"
	case at.User != nil:
		return "is an address with a user: give it as the type basic"
	case at.Fragment != "":
		return "is an address with a fragment, which is never sent"
	}
	if _, ok := mostSpecific(c, at); !ok {
		return "is an address of a host that is not among the connection's hosts"
	}
	return ""
}

// shortestPart is the minimum length, in bytes, of a part of an address that may be a secret by itself.
const shortestPart = 16

// partsOf returns the texts that may reveal the address in an echo: the whole address, its path and query, and each
// part of these that is long enough to be a secret by itself.
func partsOf(secret string) []string {
	at, err := url.Parse(secret)
	if err != nil {
		return []string{secret}
	}
	parts := []string{secret}
	if request := at.RequestURI(); len(request) >= minSecret {
		parts = append(parts, request)
	}
	for _, p := range strings.FieldsFunc(at.RequestURI(),
		func(r rune) bool { return strings.ContainsRune("/?&=", r) }) {
		if len(p) >= shortestPart {
			parts = append(parts, p)
		}
	}
	return parts
}
