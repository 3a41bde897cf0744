package provider

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

var errRequestTimeout = errors.New("the model did not answer in time")

// classify converts the error of a request into an *Error.
func (p *OpenAI) classify(err error, seen *seen) *Error {
	e := &Error{Type: agent.ErrProvider, status: seen.status}
	switch {
	case seen.tooLarge:
		e.Reason, e.Message = ReasonNoAnswer, fmt.Sprintf("the model's server sent more than %d bytes", p.opts.MaxReply)
	case seen.status == 0:
		p.unreached(e, err)
	case isPage(seen.head):
		r := readRefusal(seen.status, seen.head)
		e.Reason, e.step, e.free, e.final = ReasonRejected, stepReached, true, true
		e.Message = p.scrub("the model's server answered with " + r.text + ": " + p.addressAdvice())
	case seen.status >= 300:
		r := readRefusal(seen.status, seen.refused)
		if seen.retryAfter > 0 {
			r.after = seen.retryAfter
		}
		p.judge(e, &r, seen)
		if seen.partial { // part of the reply arrived: it was paid, and the same request may end the same way
			e.free, e.transient, e.loading, e.Unread = false, false, false, true
		}
	default:
		// The server sent 200, but what followed broke off or was not a chat completion. It was paid all the same.
		e.Reason, e.Message, e.Unread = ReasonNetwork,
			p.scrub("the model's server sent a reply that cannot be read: "+err.Error()), true
	}
	return e
}

// unreached fills in e for a request without a reply.
func (p *OpenAI) unreached(e *Error, err error) {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which may contain a password
	}
	text := err.Error()
	e.Reason, e.step, e.transient = ReasonNetwork, stepReached, true
	advice := "is it running, and is OPENAI_BASE_URL right?"
	var dns *net.DNSError
	switch {
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		e.transient, e.final, advice = false, true, "it speaks http: set OPENAI_BASE_URL to http://..."
	case strings.Contains(text, "x509:") || strings.Contains(text, "tls:"):
		e.transient, e.final, advice = false, true,
			"its certificate is not trusted here: SSL_CERT_FILE may name the authority that signed it"
	case errors.As(err, &dns) && dns.IsNotFound:
		advice = "is the host of OPENAI_BASE_URL right?"
	}
	e.Message = p.scrub(fmt.Sprintf("the model's server cannot be reached: %s (%s)", text, advice))
}

// judge classifies a refusal in e and decides whether a retry may succeed.
func (p *OpenAI) judge(e *Error, r *refusal, seen *seen) {
	j := judgementOf(r)
	if j.outcome != final && seen.header.Get("X-Should-Retry") == "false" {
		j.outcome = final
	}
	e.Reason, e.refusal, e.retryAfter = j.reason, r, r.after
	e.transient, e.loading, e.final = j.outcome == transient, j.outcome == loading, j.outcome == final && !r.unlucky
	e.free = j.free || r.status < 500 && r.status != http.StatusRequestTimeout
	if r.unlucky {
		e.Type, e.Reason, e.said, e.Unread, e.transient = agent.ErrInvalidCode, ReasonInvalidPayload, r.said, true,
			false
		j.says, j.advice, j.step = "the model's server could not read the model's answer as a call", "", stepNone
	}
	e.step = j.step
	text := r.text
	if text == "" {
		text = "no reason given"
	}
	advice := j.advice
	switch j.step {
	case stepModel:
		advice = fmt.Sprintf(advice, p.scrub(seen.model))
	case stepReached:
		if advice == "" {
			advice = p.addressAdvice()
		}
		if seen.location != "" {
			text, advice = "it redirects to "+MaskURL(seen.location),
				"set OPENAI_BASE_URL to "+MaskURL(strings.TrimSuffix(seen.location, chatPath))
		}
	case stepKey:
		if p.opts.Key == "" {
			advice = "it wants a key: " + advice
		}
	}
	e.Message = p.scrub(fmt.Sprintf("%s (%d): %s", j.says, r.status, text))
	if advice != "" {
		e.Message += "; " + advice
	}
}

// addressAdvice returns advice about the likely fault of the base URL.
func (p *OpenAI) addressAdvice() string {
	if p.opts.BaseURL == "" || versioned(p.opts.BaseURL) {
		return "is OPENAI_BASE_URL the address of an OpenAI-compatible interface?"
	}
	return "most servers want OPENAI_BASE_URL to end in /v1: try " + MaskURL(withVersion(p.opts.BaseURL))
}

// scrub removes secrets from text, and cuts it to 400 bytes.
func (p *OpenAI) scrub(text string) string {
	for _, s := range p.secrets {
		text = strings.ReplaceAll(text, s, "[secret]")
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	const most = 400
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
