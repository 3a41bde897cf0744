package call

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
)

// Declared reports whether the name occurs in the method's program, contract or parameters, so everybody in the
// namespace may read it.
func (c *Selection) Declared(name string) bool {
	if c.Artifact.Declares(name) {
		return true
	}
	k := c.Terms.Contract
	return k != nil && slices.ContainsFunc([]json.RawMessage{k.Deliverable, k.Signature},
		func(raw json.RawMessage) bool { return strings.Contains(string(raw), strconv.Quote(name)) })
}

// NamedType returns an error type in a form that everybody in the namespace may read. A type that a program made up at
// run time may contain data, so it is replaced.
func (c *Selection) NamedType(errorType string) string {
	if slices.Contains(agent.ErrorTypes(), errorType) || c.Declared(errorType) {
		return errorType
	}
	return agent.ErrTool
}

// Outlined describes an input without its content, for other owners.
func (c *Selection) Outlined(args []json.RawMessage, kwargs json.RawMessage) string {
	text := "args " + prompt.Outline(jsonenc.Array(args), c.Declared)
	if len(kwargs) > len("{}") {
		text += " kwargs " + prompt.Outline(kwargs, c.Declared)
	}
	return text
}

// OutlinedAnswer describes an answer without its content, for other owners.
func (c *Selection) OutlinedAnswer(value json.RawMessage, errorType string) string {
	if errorType != "" {
		return "an error"
	}
	return "a value of the form " + prompt.Outline(value, c.Declared)
}
