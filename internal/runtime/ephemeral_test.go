package runtime

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
)

// A call may make its session. A request that is refused, or was answered before, leaves none behind.
func TestEphemeralSession(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1")}}, map[string][]string{"calculator.one": {"one"}}, nil)
	sessions := func() []agent.Session {
		list, _, err := r.ListSessions(t.Context(), SessionQuery{Limit: 10})
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
	if _, err := call(CallRequest{Role: "a/b", Method: "one"}); err == nil || len(sessions()) != 0 {
		t.Errorf("a bad role: %v, %d sessions", err, len(sessions()))
	}
	keyed := CallRequest{Role: "calculator", Method: "one", IdempotencyKey: "k", BodyHash: "h"}
	first, err := call(keyed)
	if err != nil || !first.Outcome.OK() {
		t.Fatalf("%+v, %v", first, err)
	}
	list := sessions()
	if len(list) != 1 || list[0].ID != first.SessionID || !list[0].Ephemeral || list[0].Owner != "ann" || list[0].Role != "calculator" || list[0].HistorySize != 1 {
		t.Errorf("sessions: %+v", list)
	}
	again, err := call(keyed)
	if err != nil || again.SessionID != first.SessionID || len(sessions()) != 1 {
		t.Errorf("replayed: %+v, %v, %d sessions", again, err, len(sessions()))
	}
	keyed.BodyHash = "other"
	if _, err := call(keyed); !errors.Is(err, ErrKeyReused) || len(sessions()) != 1 {
		t.Errorf("reused: %v, %d sessions", err, len(sessions()))
	}
}
