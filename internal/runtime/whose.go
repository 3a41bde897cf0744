package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
)

// reader returns the owner of the call's session. Prompts for the call, and what the call stores, contain no other
// owner's content.
func (c *Call) reader() string { return cmp.Or(c.session.Owner, agent.LocalOwner) }

// ownerOfSession returns the session's owner, or "" if the session is gone.
func (c *Call) ownerOfSession(ctx context.Context, id string) string {
	if id == c.session.ID {
		return c.reader()
	}
	s, err := c.env.Store.Session(ctx, id)
	if err != nil {
		return ""
	}
	return cmp.Or(s.Owner, agent.LocalOwner)
}

// quote returns the owner's text for prompts, secrets masked. Other owners get shape instead.
func (c *Call) quote(owner, text, shape string) prompt.Quote {
	return prompt.Of(owner, c.mask(text), c.mask(shape))
}

// mine returns a text of the call's own owner for prompts, secrets masked.
func (c *Call) mine(text string) prompt.Quote { return prompt.Of(c.reader(), c.mask(text), "") }

// forAll returns a text for prompts that everybody in the namespace may read, secrets masked.
func (c *Call) forAll(text string) prompt.Quote { return prompt.Public(c.mask(text)) }

// declared reports whether the name occurs in the method's program, contract or parameters, so everybody in the
// namespace may read it.
func (c *selected) declared(name string) bool {
	if c.artifact.Declares(name) {
		return true
	}
	k := c.terms.contract
	return k != nil && slices.ContainsFunc([]json.RawMessage{k.Deliverable, k.Signature},
		func(raw json.RawMessage) bool { return strings.Contains(string(raw), strconv.Quote(name)) })
}

// namedType returns an error type in a form that everybody in the namespace may read. A type that a program made up at
// run time may contain data, so it is replaced.
func (c *selected) namedType(errorType string) string {
	if slices.Contains(agent.ErrorTypes(), errorType) || c.declared(errorType) {
		return errorType
	}
	return agent.ErrTool
}

// outlined describes an input without its content, for other owners.
func (c *selected) outlined(args []json.RawMessage, kwargs json.RawMessage) string {
	text := "args " + prompt.Outline(jsonenc.Array(args), c.declared)
	if len(kwargs) > len("{}") {
		text += " kwargs " + prompt.Outline(kwargs, c.declared)
	}
	return text
}

// outlinedAnswer describes an answer without its content, for other owners.
func (c *selected) outlinedAnswer(value json.RawMessage, errorType string) string {
	if errorType != "" {
		return "an error"
	}
	return "a value of the form " + prompt.Outline(value, c.declared)
}
