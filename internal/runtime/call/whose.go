package call

import (
	"cmp"
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
)

// Reader returns the owner of the call's session. Prompts for the call, and what the call stores, contain no other
// owner's content.
func (c *Call) Reader() string { return cmp.Or(c.Session.Owner, agent.LocalOwner) }

// OwnerOfSession returns the session's owner, or "" if the session is gone.
func (c *Call) OwnerOfSession(ctx context.Context, id string) string {
	if id == c.Session.ID {
		return c.Reader()
	}
	s, err := c.Env.Store.Session(ctx, id)
	if err != nil {
		return ""
	}
	return cmp.Or(s.Owner, agent.LocalOwner)
}

// Quote returns the owner's text for prompts, secrets masked. Other owners get shape instead.
func (c *Call) Quote(owner, text, shape string) prompt.Quote {
	return prompt.Of(owner, c.Mask(text), c.Mask(shape))
}

// Mine returns a text of the call's own owner for prompts, secrets masked.
func (c *Call) Mine(text string) prompt.Quote { return prompt.Of(c.Reader(), c.Mask(text), "") }

// ForAll returns a text for prompts that everybody in the namespace may read, secrets masked.
func (c *Call) ForAll(text string) prompt.Quote { return prompt.Public(c.Mask(text)) }
