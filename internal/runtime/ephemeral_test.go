package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// slowSessions is a store that creates a session when the test allows it, unless the caller gives up first.
type slowSessions struct {
	store.Namespace
	begun, made chan struct{}
}

func (s *slowSessions) CreateSession(ctx context.Context, session agent.Session,
	values map[string]json.RawMessage) error {
	close(s.begun)
	<-s.made
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.Namespace.CreateSession(ctx, session, values)
}

// A running call that is canceled while its session is created is recorded as canceled: clients that have seen it can
// find it.
func TestCanceledBeforeItsSession(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{}, nil, nil)
	slow := &slowSessions{r.env.Store, make(chan struct{}), make(chan struct{})}
	r.env.Store = slow
	id, failed := ids.New("call"), make(chan error, 1)
	go func() {
		_, err := r.Call(t.Context(), CallRequest{CallID: id, SessionID: ids.NewSession(true), Ephemeral: true,
			Role: "calculator", Method: "one"})
		failed <- err
	}()
	<-slow.begun
	if !r.CancelRunning(id) {
		t.Error("the call does not run")
	}
	close(slow.made)
	if err := <-failed; err != nil {
		t.Errorf("the call was refused: %v", err)
	}
	got, err := slow.Call(t.Context(), id)
	if err != nil || got.Outcome == nil || got.Outcome.ErrorType != agent.ErrCanceled {
		t.Errorf("it is kept as %+v, %v", got.Outcome, err)
	}
}

// A call may make its session. A request that is refused, or was answered before, leaves none behind.
func TestEphemeralSession(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1")}},
		map[string][]string{"calculator.one": {"one"}}, nil)
	stored := func() []agent.Session {
		list, _, err := r.ListSessions(t.Context(), sessions.Query{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	call := func(q CallRequest) (Reply, error) {
		q.SessionID, q.Ephemeral, q.Owner = ids.NewSession(true), true, "ann"
		res, err := r.Call(t.Context(), q)
		var reply Reply
		if err == nil {
			err = json.Unmarshal(res.Body, &reply)
		}
		return reply, err
	}
	if _, err := call(CallRequest{Role: "a/b", Method: "one"}); err == nil || len(stored()) != 0 {
		t.Errorf("a bad role: %v, %d sessions", err, len(stored()))
	}
	keyed := CallRequest{Role: "calculator", Method: "one", IdempotencyKey: "k", BodyHash: "h"}
	first, err := call(keyed)
	if err != nil || !first.Outcome.OK() {
		t.Fatalf("%+v, %v", first, err)
	}
	list := stored()
	if len(list) != 1 || list[0].ID != first.SessionID || !list[0].Ephemeral || list[0].Owner != "ann" ||
		list[0].Role != "calculator" || list[0].HistorySize != 1 {
		t.Errorf("sessions: %+v", list)
	}
	again, err := call(keyed)
	if err != nil || again.SessionID != first.SessionID || len(stored()) != 1 {
		t.Errorf("replayed: %+v, %v, %d sessions", again, err, len(stored()))
	}
	keyed.BodyHash = "other"
	if _, err := call(keyed); !errors.Is(err, ErrKeyReused) || len(stored()) != 1 {
		t.Errorf("reused: %v, %d sessions", err, len(stored()))
	}
}
