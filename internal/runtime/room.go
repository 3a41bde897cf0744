package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Room returns a *storage.FullError if the owner's share has no room for more.
func (r *Runtime) Room(ctx context.Context, owner string, more store.Bytes) error {
	return r.env.Storage.Room(ctx, owner, more)
}

// ListStored returns the stored bytes of owners, sorted by name, that follow the name after.
func (r *Runtime) ListStored(ctx context.Context, after string, limit int) ([]store.OwnerBytes, error) {
	return r.env.Store.ListStored(ctx, after, limit)
}

// Stored returns the owner's stored bytes.
func (r *Runtime) Stored(ctx context.Context, owner string) (store.OwnerBytes, error) {
	s, err := r.env.Store.Stored(ctx, owner)
	return store.OwnerBytes{Owner: owner, Bytes: s.Own}, err
}

// Bytes that every call reserves.
const (
	leastRecord = 400     // a record without its arguments
	leastValue  = 1 << 10 // the recorded answer
)

// enterRoom reserves room for the record of a call and for its recorded answer. It does so before the call runs,
// because nothing may happen without a record. leaveRoom releases it once the call is committed.
func (c *opened) enterRoom(ctx context.Context) error {
	need := store.Bytes{Histories: leastRecord + int64(len(c.Kwargs)), Values: leastValue}
	for _, a := range c.Args {
		need.Histories += int64(len(a))
	}
	if c.Session.Ephemeral && c.Depth == 0 && c.Session.HistorySize == 0 {
		need.Contexts = 1 // the call creates its session
	}
	return c.hold(ctx, need)
}

// hold reserves room in the owner's share until leaveRoom.
func (c *opened) hold(ctx context.Context, need store.Bytes) error {
	err := c.Env.Storage.Hold(ctx, c.Session.Owner, need)
	if err == nil {
		c.held.Add(need)
	}
	return err
}

// leaveRoom releases everything that the call reserved.
func (c *opened) leaveRoom() {
	c.Env.Storage.Release(c.Session.Owner, c.held)
	c.held = store.Bytes{}
}

// bound removes what the shares have no room for from the answer. The call then ends in an error, but its record is
// kept.
func (a *answered) bound() {
	a.boundValues()
	a.boundContext()
}

// boundValues reserves room for the value and the effects. Without room they are not stored, and the value only goes to
// the waiting client. If no client waits, or if a replay will need the reply, the call ends in an error.
func (a *answered) boundValues() {
	value, journal := len(a.outcome.Value), len(a.last.Result.Effects.Journal)
	if a.open.key != nil {
		value *= 2 // the reply for replays contains it as well
	}
	if !a.kept {
		journal = 0
	}
	if value+journal <= leastValue {
		return
	}
	var full *storage.FullError
	if !errors.As(a.open.hold(a.Env.Within(), store.Bytes{Values: int64(value + journal)}), &full) {
		return
	}
	// Without its effects the call is not replayable, and makes no fixture.
	a.last.Result.Effects.Truncated = true
	if a.valueLost = true; a.outcome.OK() && (a.open.key != nil || a.open.unattended) {
		a.takeBack(full.Outcome())
		return
	}
	a.trail.warn("the value and the effects are not kept: there is no room for " + full.Error())
}

// takeBack ends a call in an error that is not its program's fault, so it does not count for or against the program.
func (a *answered) takeBack(o agent.Outcome) {
	a.outcome, a.context = o, nil
	for i := range a.changes {
		if c := &a.changes[i]; c.Result == agent.ClassOK {
			c.Result, c.Fixture, c.Answered, c.Caller, c.Shapes, c.Outlines = agent.ClassNone, nil, "", "", nil, nil
		}
	}
	if a.adopting != nil {
		a.adopting.result, a.adopting.fixture = agent.ClassNone, nil
	}
}

// boundContext drops a change of the context that is too large. The call then ends in an error; its record and its
// effects are kept.
func (a *answered) boundContext() {
	if a.context.Empty() || !a.outcome.OK() {
		return
	}
	before := a.Memory
	if before == nil { // a setter has not read it
		var err error
		if before, err = a.Env.Store.Context(a.Env.Within(), a.Session.ID); err != nil {
			return // the commit will fail as well
		}
	}
	after := maps.Clone(before)
	a.context.Apply(after)
	size := sessions.Size(after)
	more := size - sessions.Size(before)
	if more <= 0 {
		return
	}
	var full *storage.FullError
	switch err := a.open.hold(a.Env.Within(), store.Bytes{Contexts: int64(more)}); {
	case errors.As(err, &full):
		a.takeBack(full.Outcome())
	case size > a.Env.MaxContext:
		a.takeBack(agent.Failed(agent.ErrResourceExhausted,
			fmt.Sprintf("the context would have %d bytes, at most %d are kept", size, a.Env.MaxContext)))
	}
}
