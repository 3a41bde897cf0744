package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Room returns a *storage.FullError where the owner cannot have that much more.
func (r *Runtime) Room(ctx context.Context, owner string, more store.Bytes) error {
	return r.o.Storage.Room(ctx, owner, more)
}

// ListStored says how many bytes owners have, by name, after the name after.
func (r *Runtime) ListStored(ctx context.Context, after string, limit int) ([]store.OwnerBytes, error) {
	return r.store.ListStored(ctx, after, limit)
}

// Stored says how many bytes the owner has.
func (r *Runtime) Stored(ctx context.Context, owner string) (store.OwnerBytes, error) {
	s, err := r.store.Stored(ctx, owner)
	return store.OwnerBytes{Owner: owner, Bytes: s.Own}, err
}

// leastRecord is what a record takes without its arguments, at least.
const leastRecord = 400

// room returns why there is no room for the record of a call and for what is kept of it: before it runs, so that nothing happens without a record.
func (c *opened) room(ctx context.Context) error {
	need := store.Bytes{Histories: leastRecord + int64(len(c.kwargs)), Values: 1}
	for _, a := range c.args {
		need.Histories += int64(len(a))
	}
	if c.session.Ephemeral && c.depth == 0 && c.session.HistorySize == 0 {
		need.Contexts = 1 // it makes its session
	}
	return c.r.o.Storage.Room(ctx, c.session.Owner, need)
}

// boundContext takes a change of the context back that is too large: the call ends in an error then, its record and its effects are kept.
func (a *answered) boundContext() {
	if a.context.Empty() || !a.outcome.OK() {
		return
	}
	before := a.memory
	if before == nil { // a setter has read none
		var err error
		if before, err = a.r.store.Context(a.r.within(), a.session.ID); err != nil {
			return // the commit fails, too
		}
	}
	after := maps.Clone(before)
	a.context.Apply(after)
	size := contextSize(after)
	more := size - contextSize(before)
	if more <= 0 {
		return
	}
	var full *storage.FullError
	switch err := a.r.o.Storage.Room(a.r.within(), a.session.Owner, store.Bytes{Contexts: int64(more)}); {
	case errors.As(err, &full):
		a.outcome, a.context = full.Outcome(), nil
	case size > a.r.o.MaxContext:
		a.outcome, a.context = agent.Failed(agent.ErrResourceExhausted, fmt.Sprintf("the context would have %d bytes, at most %d are kept", size, a.r.o.MaxContext)), nil
	}
}

// contextSize is what a context counts towards its bound.
func contextSize(memory map[string]json.RawMessage) (size int) {
	for k, v := range memory {
		size += len(k) + len(v) + 4
	}
	return size
}

// roomForProgram returns the outcome of a forge for which the model is not asked, as there is no room to keep what it would write; nil where there is.
func (w *writer) roomForProgram(ctx context.Context) *agent.Outcome {
	const least = 1 << 10
	var full *storage.FullError
	if !errors.As(w.r.o.Storage.Room(ctx, w.owner, store.Bytes{Tools: least}), &full) {
		return nil
	}
	o := full.Outcome()
	return &o
}
