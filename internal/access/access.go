// Package access says who sends a request and what they may do: a Principal acts in one namespace and has Scopes. An
// Authenticator finds the principal of a bearer token; the tokens of a file are one.
//
// A token is compared in constant time, and is never part of an error. Scopes stand beside each other: none includes another. The
// package knows nothing of HTTP, of operations, or of what is stored.
package access

import (
	"context"
	"errors"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Scope is one right. The zero Scope is none.
type Scope uint8

// The scopes: Read looks, Call makes calls and sessions of one's own, Operate changes what everybody in the namespace
// uses and sees all sessions in it, Admin is for connections, exports, namespaces and budgets.
const (
	Read Scope = 1 << iota
	Call
	Operate
	Admin
)

// All has every scope.
const All = Scopes(Read | Call | Operate | Admin)

var names = []struct {
	scope Scope
	name  string
}{{Read, "read"}, {Call, "call"}, {Operate, "operate"}, {Admin, "admin"}}

// String returns the scope's name in token files, claims and documents.
func (s Scope) String() string { return Scopes(s).String() }

// ParseScope returns the scope of that name, and whether there is one.
func ParseScope(name string) (Scope, bool) {
	for _, n := range names {
		if n.name == name {
			return n.scope, true
		}
	}
	return 0, false
}

// Scopes is a set of scopes.
type Scopes uint8

// Has reports whether the scope is in the set.
func (s Scopes) Has(x Scope) bool { return Scopes(x)&s != 0 }

// Names returns the names of the scopes in the set, in the order in which they are defined; none: an empty list.
func (s Scopes) Names() []string {
	list := []string{}
	for _, n := range names {
		if s.Has(n.scope) {
			list = append(list, n.name)
		}
	}
	return list
}

// String returns the names with a space between them, as OAuth writes scopes.
func (s Scopes) String() string { return strings.Join(s.Names(), " ") }

// Principal is who sends a request.
type Principal struct {
	Name        string
	Issuer      string // URL of the OpenID Connect issuer that vouches for the name; empty: a token file
	Namespace   agent.Namespace
	Scopes      Scopes
	Rate        float64 // requests per second; 0: no limit
	Concurrency int     // calls at once; 0: no limit
}

// Owner returns the name under which sessions, files and audit entries are stored. Names of a token file contain no slash, so
// that none is the owner of an issuer's token.
func (p Principal) Owner() string {
	if p.Issuer == "" {
		return p.Name
	}
	return p.Issuer + "#" + p.Name
}

// Visitor returns the principal as it acts in another namespace than its own, under a name that no principal of that one has: it
// begins with the visitor's own namespace and a slash.
func (p Principal) Visitor() Principal {
	p.Name, p.Issuer = string(p.Namespace)+"/"+p.Owner(), ""
	return p
}

// Local returns the principal of a daemon without tokens, which answers this machine only.
func Local() Principal {
	return Principal{Name: "local", Namespace: agent.DefaultNamespace, Scopes: All}
}

// ErrUnknown is returned for a token that nobody has, or that has expired.
var ErrUnknown = errors.New("unknown access token")

// Authenticator finds the principal of a token. It may be used concurrently.
type Authenticator interface {
	// Authenticate returns an error that matches ErrUnknown where the token is nobody's. Another error means that this could
	// not be found out.
	Authenticate(ctx context.Context, bearer string) (Principal, error)
}

// Any asks several in turn.
type Any []Authenticator

// Authenticate returns what the first one says that knows the token, else the last error.
func (a Any) Authenticate(ctx context.Context, bearer string) (p Principal, err error) {
	err = ErrUnknown
	for _, one := range a {
		if p, err = one.Authenticate(ctx, bearer); err == nil || !errors.Is(err, ErrUnknown) {
			break
		}
	}
	return p, err
}
