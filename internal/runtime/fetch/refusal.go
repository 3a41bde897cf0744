package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Values of Note.ErrorKind and Refusal.Kind.
const (
	KindDNS            = "dns"
	KindRefused        = "refused" // the host refused the connection
	KindTimeout        = "timeout"
	KindDenied         = "denied"          // policy denies the request
	KindRedirectDenied = "redirect_denied" // a host redirected to what policy denies
	KindRedirects      = "redirects"       // too many redirects
	KindTooLarge       = "too_large"
	KindIncomplete     = "incomplete" // the body was cut off
	KindEncoding       = "encoding"   // the body cannot be unpacked or decoded
	KindNetwork        = "network"
	KindConnection     = "connection" // a connection's secret is unavailable or was not accepted
)

// A Refusal is the error of a fetch without an answer.
type Refusal struct {
	Kind    string // one of the kinds
	Message string // for the program
}

// unkept carries the failure that the writer of a file returned, unchanged.
type unkept struct{ *recurgent.Failure }

func (e *Refusal) Error() string { return e.Message }

// deny returns a refusal by policy.
func deny(format string, args ...any) *Refusal {
	return &Refusal{KindDenied, fmt.Sprintf(format, args...)}
}

// failure returns what the program sees: denied for a refusal by policy, resource_exhausted for a body beyond its
// bound, otherwise fetch_failed.
func (e *Refusal) failure() *recurgent.Failure {
	f := &recurgent.Failure{Type: "fetch_failed", Message: "fetch: " + e.Message}
	switch e.Kind {
	case KindDenied, KindRedirectDenied:
		f.Type = agent.ErrDenied
	case KindTooLarge:
		f.Type = agent.ErrResourceExhausted
	}
	return f
}

// kindOf returns the most likely kind of a failure of the type.
func kindOf(failureType string) string {
	switch failureType {
	case agent.ErrDenied:
		return KindDenied
	case agent.ErrResourceExhausted:
		return KindTooLarge
	}
	return KindNetwork
}

// refusalOf converts err to a Refusal that reveals no more of the network than a program may know.
func refusalOf(err error) *Refusal {
	var known *Refusal
	var unkept *unkept
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &unkept):
		return &Refusal{KindTooLarge, strings.TrimPrefix(unkept.Message, "fetch: ")}
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork),
		errors.Is(err, ssrf.ErrProhibitedPort), errors.Is(err, ssrf.ErrInvalidHostPort):
		return deny("the host's address is not public")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &Refusal{KindTimeout, "no answer in time"}
	case errors.As(err, &dns):
		return &Refusal{KindDNS, "the host's name cannot be resolved"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Refusal{KindRefused, "the host refused the connection"}
	}
	return &Refusal{KindNetwork, "the connection failed: " + wire.BoundText([]byte(err.Error()), 200)}
}
