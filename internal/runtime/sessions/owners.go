package sessions

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Here claims the session for this replica, ahead of a call.
func (s *Sessions) Here(ctx context.Context, sessionID string) error {
	epoch, err := s.Own(ctx, sessionID)
	s.Disown(sessionID, epoch)
	return err
}

// Own claims the session until Disown is called. The epoch is 0 if there are no other replicas.
func (s *Sessions) Own(ctx context.Context, sessionID string) (epoch int64, err error) {
	if s.env.Owners == nil {
		return 0, nil
	}
	return s.env.Owners.Enter(ctx, sessionID)
}

// Create stores a new session and claims it until Disown is called. The epoch is as in Own.
func (s *Sessions) Create(ctx context.Context, one agent.Session) (epoch int64, err error) {
	empty := map[string]json.RawMessage{}
	if s.env.Owners == nil {
		return 0, s.env.Store.CreateSession(ctx, one, empty)
	}
	return s.env.Owners.Create(ctx, one, empty)
}

// Disown ends what Own or Create began. It does nothing for epoch 0.
func (s *Sessions) Disown(sessionID string, epoch int64) {
	if epoch != 0 {
		s.env.Owners.Leave(sessionID)
	}
}

// Fenced handles a commit that was rejected because another replica owns the session: the session's next call asks for
// the owner again.
func (s *Sessions) Fenced(c *store.CallCommit, err error) {
	if c.Fence != 0 && errors.Is(err, store.ErrFenced) {
		s.env.Owners.Fenced(c.SessionID)
	}
}

// Turn waits until no call of the session runs, and keeps other calls waiting until leave is called. Commits need
// epoch, under which the session is owned; it is 0 without other replicas. Turn returns turns.ErrFull if too many calls
// wait already.
func (s *Sessions) Turn(ctx context.Context, sessionID string) (epoch int64, leave func(), err error) {
	return s.turn(ctx, sessionID, s.env.MaxQueue)
}

// turn is Turn with a queue of at most most calls.
func (s *Sessions) turn(ctx context.Context, sessionID string, most int) (epoch int64, leave func(), err error) {
	if epoch, err = s.Own(ctx, sessionID); err != nil {
		return 0, nil, err
	}
	if err := s.Queue.Enter(ctx, sessionID, most); err != nil {
		s.Disown(sessionID, epoch)
		return 0, nil, err
	}
	return epoch, func() {
		s.Queue.Leave(sessionID)
		s.Disown(sessionID, epoch)
	}, nil
}
