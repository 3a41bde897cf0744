package provider

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cenkalti/backoff/v5"
	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// laterError is a failure after which the server said when to come back.
type laterError struct {
	failed *Error
	later  *backoff.RetryAfterError
}

func (e *laterError) Error() string { return e.failed.Error() }

func (e *laterError) Unwrap() []error { return []error{e.failed, e.later} }

var errRequestTimeout = errors.New("the model did not answer in time")

// classify turns what a request ended in into an *Error.
func (p *OpenAI) classify(err error, seen *seen) *Error {
	text := p.scrub(errorText(err))
	status := seen.status
	e := &Error{Type: agent.ErrProvider, status: status}
	switch {
	case seen.tooLarge:
		e.Reason, e.Message = ReasonNoAnswer, fmt.Sprintf("the model's server sent more than %d bytes", p.opts.MaxReply)
	case status == 0:
		e.Reason, e.Message, e.transient = ReasonNetwork, "the model's server cannot be reached: "+text, true
	case status == http.StatusTooManyRequests:
		e.Reason, e.Message, e.transient = ReasonRateLimited, "the model's server limits the rate: "+text, !strings.Contains(text, "insufficient_quota")
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict:
		e.Reason, e.Message, e.transient = ReasonServerError, fmt.Sprintf("the model's server answered %d: %s", status, text), true
	case status >= 400 || status >= 300:
		e.Reason, e.Message = ReasonRejected, fmt.Sprintf("the model's server refused the request with %d: %s", status, text)
	default:
		// The server said 200, but what followed broke off or was no chat completion.
		e.Reason, e.Message, e.transient = ReasonNetwork, "the model's server sent a reply that cannot be read: "+text, true
	}
	e.unsupported = unsupported(status, text)
	if e.unsupported {
		e.transient = false
	}
	return e
}

// unsupported guesses whether a refusal is about tools or structured output: servers say it in many ways. Any 400
// may be one, for asking once more costs little; others must say the word.
func unsupported(status int, text string) bool {
	text = strings.ToLower(text)
	names := strings.Contains(text, "tool") || strings.Contains(text, "function") || strings.Contains(text, "response_format") || strings.Contains(text, "json_schema")
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return true
	case http.StatusNotFound, http.StatusNotImplemented, http.StatusInternalServerError:
		return names
	}
	return false
}

func errorText(err error) string {
	var api *openai.APIError
	var other *openai.RequestError
	var wrapped *url.Error
	switch {
	case errors.As(err, &api):
		if code, ok := api.Code.(string); ok && code != "" {
			return code + ": " + api.Message
		}
		return api.Message
	case errors.As(err, &other):
		body := strings.TrimSpace(string(other.Body))
		if body == "" {
			return "no reason given"
		}
		return body
	case errors.As(err, &wrapped):
		return wrapped.Err.Error() // without the URL, which may hold a password
	}
	return err.Error()
}

// scrub removes what must not be disclosed and shortens the rest.
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
