package runtime

import (
	"cmp"
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
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
