package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Here claims the session for this replica, ahead of a call.
func (r *Runtime) Here(ctx context.Context, sessionID string) error {
	epoch, err := r.own(ctx, sessionID)
	r.disown(sessionID, epoch)
	return err
}

// own claims the session until disown is called. The epoch is 0 if there are no other replicas.
func (r *Runtime) own(ctx context.Context, sessionID string) (epoch int64, err error) {
	if r.env.Owners == nil {
		return 0, nil
	}
	return r.env.Owners.Enter(ctx, sessionID)
}

// create stores a new session and claims it until disown is called. The epoch is as in own.
func (r *Runtime) create(ctx context.Context, s agent.Session) (epoch int64, err error) {
	empty := map[string]json.RawMessage{}
	if r.env.Owners == nil {
		return 0, r.env.Store.CreateSession(ctx, s, empty)
	}
	return r.env.Owners.Create(ctx, s, empty)
}

// disown ends what own or create began. It does nothing for epoch 0.
func (r *Runtime) disown(sessionID string, epoch int64) {
	if epoch != 0 {
		r.env.Owners.Leave(sessionID)
	}
}

// fenced handles a commit that was rejected because another replica owns the session: the session's next call asks for
// the owner again.
func (r *Runtime) fenced(c *store.CallCommit, err error) {
	if c.Fence != 0 && errors.Is(err, store.ErrFenced) {
		r.env.Owners.Fenced(c.SessionID)
	}
}

// Turn waits until no call of the session runs, and keeps other calls waiting until leave is called. Commits need
// epoch, under which the session is owned; it is 0 without other replicas. Turn returns turns.ErrFull if too many calls
// wait already.
func (r *Runtime) Turn(ctx context.Context, sessionID string) (epoch int64, leave func(), err error) {
	return r.turn(ctx, sessionID, r.env.MaxQueue)
}

// turn is Turn with a queue of at most most calls.
func (r *Runtime) turn(ctx context.Context, sessionID string, most int) (epoch int64, leave func(), err error) {
	if epoch, err = r.own(ctx, sessionID); err != nil {
		return 0, nil, err
	}
	if err := r.sessions.Enter(ctx, sessionID, most); err != nil {
		r.disown(sessionID, epoch)
		return 0, nil, err
	}
	return epoch, func() {
		r.sessions.Leave(sessionID)
		r.disown(sessionID, epoch)
	}, nil
}
