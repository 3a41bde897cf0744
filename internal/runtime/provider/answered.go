package provider

import (
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// Answered names how a request to the model ended ("ok", the reason of an *Error, "not_sent", or "canceled"), for metrics and traces,
// and returns what it cost: usage, or the error's own. A request that was sent counts, answered or not.
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

// FormOf returns the form in which a question's reply held its program, for metrics; "" if no reply of a model came.
func FormOf(r Reply, err error) reply.Form {
	var failed *Error
	if errors.As(err, &failed) && (failed.Reason == ReasonInvalidPayload || failed.Reason == ReasonCutOff) {
		return reply.FormNone
	}
	return r.Form
}
