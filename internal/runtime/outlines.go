package runtime

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
)

// declared reports whether the name occurs in the method's program, contract or parameters, so everybody in the
// namespace may read it.
func (c *Selection) declared(name string) bool {
	if c.artifact.Declares(name) {
		return true
	}
	k := c.terms.Contract
	return k != nil && slices.ContainsFunc([]json.RawMessage{k.Deliverable, k.Signature},
		func(raw json.RawMessage) bool { return strings.Contains(string(raw), strconv.Quote(name)) })
}

// namedType returns an error type in a form that everybody in the namespace may read. A type that a program made up at
// run time may contain data, so it is replaced.
func (c *Selection) namedType(errorType string) string {
	if slices.Contains(agent.ErrorTypes(), errorType) || c.declared(errorType) {
		return errorType
	}
	return agent.ErrTool
}

// outlined describes an input without its content, for other owners.
func (c *Selection) outlined(args []json.RawMessage, kwargs json.RawMessage) string {
	text := "args " + prompt.Outline(jsonenc.Array(args), c.declared)
	if len(kwargs) > len("{}") {
		text += " kwargs " + prompt.Outline(kwargs, c.declared)
	}
	return text
}

// outlinedAnswer describes an answer without its content, for other owners.
func (c *Selection) outlinedAnswer(value json.RawMessage, errorType string) string {
	if errorType != "" {
		return "an error"
	}
	return "a value of the form " + prompt.Outline(value, c.declared)
}
