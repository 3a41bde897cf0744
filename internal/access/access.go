// Package access identifies who sends a request and what they may do. A Principal acts in one namespace and has Scopes.
// An Authenticator maps a bearer token to its principal; Tokens, the tokens of a file, is one implementation.
//
// Tokens are compared in constant time and never appear in errors. Scopes are independent: none includes another. The
// package knows nothing of HTTP, operations or stored data.
package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Scope is a single right. The zero Scope grants nothing.
type Scope uint8

// Scopes of a principal. Read allows reading, Call allows calls and sessions of the principal's own, Operate allows
// changes to what everybody in the namespace uses and access to all its sessions, and Admin allows managing
// connections, exports, namespaces and budgets.
const (
	Read Scope = 1 << iota
	Call
	Operate
	Admin
)

// All is the set of all scopes.
const All = Scopes(Read | Call | Operate | Admin)

var names = []struct {
	scope Scope
	name  string
}{{Read, "read"}, {Call, "call"}, {Operate, "operate"}, {Admin, "admin"}}

// String returns the scope's name in token files, claims and documentation.
func (s Scope) String() string { return Scopes(s).String() }

// ParseScope returns the scope with that name. The second result is false if there is none.
func ParseScope(name string) (Scope, bool) {
	for _, n := range names {
		if n.name == name {
			return n.scope, true
		}
	}
	return 0, false
}

// Scopes is a set of Scope values.
type Scopes uint8

// Has reports whether the set includes the scope.
func (s Scopes) Has(x Scope) bool { return Scopes(x)&s != 0 }

// Names returns the names of the scopes in the set, in the order of their declaration. It is empty, not nil, for the
// empty set.
func (s Scopes) Names() []string {
	list := []string{}
	for _, n := range names {
		if s.Has(n.scope) {
			list = append(list, n.name)
		}
	}
	return list
}

// String returns the names separated by spaces, like the OAuth parameter scope.
func (s Scopes) String() string { return strings.Join(s.Names(), " ") }

// Principal is the sender of a request.
type Principal struct {
	Name        string
	Issuer      string // URL of the OpenID Connect issuer of the token; "" for tokens of a file
	Namespace   agent.Namespace
	Scopes      Scopes
	Rate        float64 // requests per second; 0 means no limit
	Concurrency int     // concurrent calls; 0 means no limit
}

// Owner returns the name under which sessions, files and audit entries are stored. Names in a token file contain no
// slash, so none of them equals the owner of an issuer's token, which contains a URL.
func (p Principal) Owner() string {
	if p.Issuer == "" {
		return p.Name
	}
	return p.Issuer + "#" + p.Name
}

// Visitor returns the principal as it acts in another namespace. Its name is prefixed with its own namespace and a
// slash, so no principal of the other namespace has the same name.
func (p Principal) Visitor() Principal {
	p.Name, p.Issuer = string(p.Namespace)+"/"+p.Owner(), ""
	return p
}

// Local returns the principal of a daemon without tokens, which accepts requests from this machine only.
func Local() Principal {
	return Principal{Name: "local", Namespace: agent.DefaultNamespace, Scopes: All}
}

// ErrUnknown means that nobody has the token, or that it has expired.
var ErrUnknown = errors.New("unknown access token")

// Authenticator maps tokens to principals. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the token's principal. The error matches ErrUnknown if nobody has the token. Any other error
	// means that the token could not be checked, or grants nothing here.
	Authenticate(ctx context.Context, bearer string) (Principal, error)
}

// Any is an Authenticator that tries several in order.
type Any []Authenticator

// Authenticate returns the first result whose error does not match ErrUnknown, otherwise the last error.
func (a Any) Authenticate(ctx context.Context, bearer string) (p Principal, err error) {
	err = ErrUnknown
	for _, one := range a {
		if p, err = one.Authenticate(ctx, bearer); err == nil || !errors.Is(err, ErrUnknown) {
			break
		}
	}
	return p, err
}

// A ForbiddenError rejects a valid token that grants no rights here. Reason is a sentence for the token's owner.
type ForbiddenError struct{ Reason string }

func (e *ForbiddenError) Error() string { return e.Reason }

// An UnavailableError means that the token cannot be checked now. Other tokens still work.
type UnavailableError struct {
	Reason     string
	RetryAfter time.Duration // when a retry makes sense; at least a second
}

func (e *UnavailableError) Error() string { return e.Reason }

// unknown is an ErrUnknown with a reason for the token's owner.
type unknown struct{ reason string }

func (e unknown) Error() string        { return e.reason }
func (e unknown) Is(target error) bool { return target == ErrUnknown }

// Unknown returns an error that matches ErrUnknown and has a reason. The reason must not contain any part of the token
// that the issuer has not signed.
func Unknown(format string, args ...any) error { return unknown{fmt.Sprintf(format, args...)} }
