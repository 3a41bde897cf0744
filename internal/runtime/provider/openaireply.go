package provider

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// readReply converts the body of a reply to a single chat completion. If it contains an error instead, the error
// becomes the response's status and body, as if the server had refused the request.
func readReply(response *http.Response, s *seen) (*http.Response, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	canonical, err := reply.Canonical(body)
	var failed *reply.ServerError
	switch {
	case errors.As(err, &failed):
		s.status, s.partial = failed.Status, failed.Partial
		response.StatusCode, canonical = failed.Status, failed.Body
	case err != nil:
		return nil, err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(canonical)), int64(len(canonical))
	return response, nil
}

// unusable returns the error for a reply that holds no program. If a token limit cut it off, the model's program is not
// to blame: the same limit would cut off its repair.
func (p *OpenAI) unusable(err error, usage agent.Usage) *Error {
	e := &Error{Type: agent.ErrInvalidCode, Reason: ReasonInvalidPayload, Message: p.scrub(err.Error()), Usage: usage}
	var why *reply.Unusable
	if errors.As(err, &why) {
		e.Unread, e.said = !why.Cut, why.Said
		if why.Cut {
			e.Type, e.Reason = agent.ErrProvider, ReasonCutOff
		}
	}
	return e
}
