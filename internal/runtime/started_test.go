package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
)

// Asynchronous calls take their turns in the order in which they were started. One call too many is rejected; none is
// started and lost.
func TestStartedCallsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		waits := func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
			<-hold
			return runtimetest.Value("1")
		}
		r, _ := scripted(t, &runtimetest.Box{Programs: map[string]runtimetest.Run{"waits": waits}},
			map[string][]string{"r.m": {"waits"}}, func(o *env.Options) { o.MaxQueue = 20 })
		id, _ := conversation(t, r, sessions.Request{Role: "r"})
		q := CallRequest{SessionID: id, Method: "m"}
		var ends []<-chan CallResult
		for i := range 21 {
			callID, done, err := r.Start(q)
			if err != nil {
				t.Fatal(err)
			}
			if events, _, _ := r.Progress(callID).Next(0); i > 0 &&
				(len(events) == 0 || events[0].Type != progress.Queued ||
					string(events[0].Data) != fmt.Sprintf(`{"ahead":%d}`, i)) {
				t.Errorf("call %d got the events %+v", i, events)
			}
			ends = append(ends, done)
			q.Method, q.Args = "n=", []json.RawMessage{json.RawMessage(strconv.Itoa(i + 1))}
		}
		q.IdempotencyKey = "again"
		if _, _, err := r.Start(q); !errors.Is(err, turns.ErrFull) {
			t.Errorf("one too many: %v", err)
		}
		if n := len(r.RunningCalls()); n != 21 {
			t.Errorf("%d calls are under way", n)
		}
		close(hold)
		for _, done := range ends {
			if res := <-done; !res.OK {
				t.Errorf("got %s", res.Body)
			}
		}
		if memory, err := r.Context(t.Context(), id); err != nil || string(memory["n"]) != "20" {
			t.Errorf("the last setter wrote %s, %v", memory["n"], err)
		}
		_, done, err := r.Start(q)
		if err != nil {
			t.Fatal(err)
		}
		if res := <-done; !res.OK {
			t.Errorf("once there is room: %s", res.Body)
		}
	})
}
