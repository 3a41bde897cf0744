package fetch

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
)

// A Guard restricts what a run may reach, in addition to the daemon's policy. It is asked before each request of a
// fetch, including redirects.
type Guard interface {
	// Permit returns nil if the program may send a request of that method to that host (in the form of agent.HostOf).
	// Otherwise it returns the approval that is missing.
	Permit(method, host string) *Approval
}

// An Approval is what a person must allow before a request can be sent.
type Approval struct {
	Message string         // text for the program and its caller
	Request string         // the API request by which a person allows it
	Details map[string]any // details of what was asked for; may be nil
}

// A Reached is an answered request of a fetch.
type Reached struct{ Method, Host string }

// allowed returns a *Refusal if the run's guard or a missing grant forbids the hop.
func (h *hops) allowed() error {
	host := h.host()
	var missing *Approval
	if h.who.Guard != nil {
		missing = h.who.Guard.Permit(h.method, host)
	}
	if missing == nil && writes(h.method) && (h.connection == nil || !h.connection.Grants(h.method)) {
		missing = h.ungranted(host)
	}
	if missing == nil {
		return nil
	}
	h.note.Missing = missing
	return deny("%s", missing.Message)
}

// ungranted returns the approval that a write to the host needs.
func (h *hops) ungranted(host string) *Approval {
	return &Approval{Request: "PUT /v1/connections/{name}", Details: map[string]any{"host": host, "method": h.method,
		"role": h.who.Role},
		Message: h.method + " to " + host + " needs a connection that grants " + h.method + " there to the role " +
			h.who.Role +
			". A person can make one: recurgentd connections set NAME --host " + host + " --method " + h.method}
}

// traced returns a trace that records that a write was sent: once there is a connection, the host may have received it.
func (h *hops) traced() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { h.note.Sent = true }}
}

// idempotencyHeader returns the name of the header for the write's idempotency key, or "" if the connection uses none.
func (h *hops) idempotencyHeader() string {
	if h.connection == nil || !writes(h.method) || h.key == "" {
		return ""
	}
	return strings.TrimSpace(h.connection.IdempotencyHeader())
}

// sendOnce signs and sends the request of the hop, and records that it was sent and answered.
func (h *hops) sendOnce(ctx context.Context) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, h.method, h.at.String(), strings.NewReader(h.body))
	if err != nil {
		return nil, deny("the request is malformed")
	}
	request.Header = h.header.Clone()
	if name := h.idempotencyHeader(); name != "" {
		request.Header.Set(name, h.key)
	}
	if h.connection != nil {
		if !slices.Contains(h.used, h.connection) {
			h.used = append(h.used, h.connection)
		}
		if err := h.connection.Sign(ctx, request); err != nil {
			return nil, err
		}
	}
	if writes(h.method) {
		request = request.WithContext(httptrace.WithClientTrace(ctx, h.traced()))
	}
	answer, err := h.exchange(request)
	if err == nil {
		h.note.Reached = append(h.note.Reached, Reached{h.method, h.host()})
	}
	return answer, err
}
