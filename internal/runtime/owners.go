package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Owners has this replica own the sessions whose calls it runs, where several share the store. Its errors mean that no call took place; one of
// them names the replica that owns the session.
type Owners interface {
	// Enter returns the epoch under which the session is owned until Leave.
	Enter(ctx context.Context, sessionID string) (epoch int64, err error)
	Leave(sessionID string)
	// Create makes a session that is owned until Leave.
	Create(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage) (epoch int64, err error)
	// Fenced is called when the store refused a commit under that epoch.
	Fenced(sessionID string)
}

// Here has this replica own the session for the call that is to come.
func (r *Runtime) Here(ctx context.Context, sessionID string) error {
	epoch, err := r.own(ctx, sessionID)
	r.disown(sessionID, epoch)
	return err
}

// own has the replica own the session until disown is called. Its epoch is 0 where there are no other replicas.
func (r *Runtime) own(ctx context.Context, sessionID string) (epoch int64, err error) {
	if r.o.Owners == nil {
		return 0, nil
	}
	return r.o.Owners.Enter(ctx, sessionID)
}

// create makes a session and has this replica own it until disown is called. Its epoch is as in own.
func (r *Runtime) create(ctx context.Context, s agent.Session) (epoch int64, err error) {
	empty := map[string]json.RawMessage{}
	if r.o.Owners == nil {
		return 0, r.store.CreateSession(ctx, s, empty)
	}
	return r.o.Owners.Create(ctx, s, empty)
}

// disown ends what own or create began. Epoch 0 is nothing.
func (r *Runtime) disown(sessionID string, epoch int64) {
	if epoch != 0 {
		r.o.Owners.Leave(sessionID)
	}
}

// fenced has the next call of the session ask who owns it, where the commit was refused since another replica does.
func (r *Runtime) fenced(c *store.CallCommit, err error) {
	if c.Fence != 0 && errors.Is(err, store.ErrFenced) {
		r.o.Owners.Fenced(c.SessionID)
	}
}

// Turn waits until no call of the session runs, and keeps others waiting until leave is called. epoch is that under which the session is owned,
// for commits; 0 where there are no other replicas. It returns ErrQueueFull when too many wait already.
func (r *Runtime) Turn(ctx context.Context, sessionID string) (epoch int64, leave func(), err error) {
	return r.turn(ctx, sessionID, r.o.MaxQueue)
}

func (r *Runtime) turn(ctx context.Context, sessionID string, most int) (epoch int64, leave func(), err error) {
	if epoch, err = r.own(ctx, sessionID); err != nil {
		return 0, nil, err
	}
	if err := r.sessions.enter(ctx, sessionID, most); err != nil {
		r.disown(sessionID, epoch)
		return 0, nil, err
	}
	return epoch, func() {
		r.sessions.leave(sessionID)
		r.disown(sessionID, epoch)
	}, nil
}
