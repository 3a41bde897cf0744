package provider

import (
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// Answered returns how a request to the model ended and what it cost, for metrics and traces. The outcome is "ok", the
// reason of an *Error, "not_sent" or "canceled". The cost is usage, or that of the error. A request that
// reached a server counts even without an answer.
func Answered(err error, usage agent.Usage) (outcome string, cost agent.Usage) {
	var failed *Error
	var refused *ChargeError
	switch {
	case err == nil:
		return "ok", usage
	case errors.As(err, &failed):
		return failed.Reason, failed.Usage
	case errors.As(err, &refused):
		return ReasonNotSent, refused.Usage
	}
	return "canceled", usage
}

// FormOf returns the form in which a reply held its program, for metrics. It is "" if no reply of a model arrived.
func FormOf(r Reply, err error) reply.Form {
	var failed *Error
	if errors.As(err, &failed) && (failed.Reason == ReasonInvalidPayload || failed.Reason == ReasonCutOff) {
		return reply.FormNone
	}
	return r.Form
}
