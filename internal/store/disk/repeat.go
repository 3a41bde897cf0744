package disk

import (
	"context"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// errRepeated means that the call was committed before.
var errRepeated = errors.New("committed already")

// repeat commits a call that may have been committed already. It is alone in its batch, so its check sees all earlier
// commits.
func (p *calls) repeat(ctx context.Context, e *entry, c *store.CallCommit, tail []byte) error {
	var was agent.LogEntry
	committed := func() error {
		switch err := p.logged(c.Log.CallID, &was); {
		case err == nil:
			return errRepeated
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		return nil
	}
	err := committed()
	if err == nil {
		err = p.n.streams.commitFiles(ctx, c.Files, func() error {
			return p.n.commit(ctx, &commit{entry: e, tail: tail, alone: true, check: func() error {
				if err := committed(); err != nil {
					return err
				}
				return p.n.members.Fenced(p.n.name, c.SessionID, c.Fence)
			}})
		})
	}
	switch {
	case errors.Is(err, errRepeated):
		if err := p.n.store.Settled(); err != nil {
			return err
		}
		c.Assign(&was)
	case err != nil:
		return err
	default:
		p.assign(c, e)
	}
	if c.Ordered != nil {
		c.Ordered()
	}
	return nil
}

// logged reads the log entry of a call. It returns store.ErrNotFound if there is none.
func (p *calls) logged(callID string, was *agent.LogEntry) error {
	p.n.mu.RLock()
	c := p.byID[callID]
	p.n.mu.RUnlock()
	if c != nil {
		*was = c.log
		return nil
	}
	correctedBy := ""
	return p.findCall(callID, was, &correctedBy)
}
