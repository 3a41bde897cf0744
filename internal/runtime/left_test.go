package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// leftRig has a call of r.m for which a model writes a program: the first one, or a repair of it.
type leftRig struct {
	t      *testing.T
	r      *Runtime
	model  *runtimetest.Model
	call   CallRequest
	hangUp context.CancelFunc
	done   chan Reply
}

// newLeftRig returns when the model has been asked, while the client is still connected.
func newLeftRig(t *testing.T, repairs bool) *leftRig {
	t.Helper()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"fixed": runtimetest.Returns("1"),
		"fickle": func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
			if string(q.Args[0]) == `"bad"` {
				return runtimetest.Failure(agent.ErrExecution, "boom")
			}
			return runtimetest.Value("1")
		}}}
	programs := []string{"fixed"}
	if repairs {
		programs = []string{"fickle", "fixed"}
	}
	x := &leftRig{t: t, done: make(chan Reply, 1)}
	x.r, x.model = scripted(t, box, map[string][]string{"r.m": programs}, nil)
	id, call := conversation(t, x.r, sessions.Request{Role: "r"})
	if repairs {
		wantReply(t, "the first call", call("m", "good"), "1 generated")
	}
	x.call = CallRequest{SessionID: id, CallID: ids.New("call"), Method: "m", IdempotencyKey: "key", BodyHash: "hash",
		Args: []json.RawMessage{json.RawMessage(`"bad"`)}, Timeout: time.Hour}
	x.model.Block = make(chan struct{})
	var ctx context.Context
	ctx, x.hangUp = context.WithCancel(t.Context())
	go func() {
		res, err := x.r.Call(ctx, x.call)
		if err != nil {
			t.Error(err)
		}
		x.done <- decodedReply(t, res)
	}()
	synctest.Wait()
	return x
}

func decodedReply(t *testing.T, res CallResult) (reply Reply) {
	if err := json.Unmarshal(res.Body, &reply); err != nil {
		t.Error(err)
	}
	return reply
}

// While a model writes for a call, the call goes on without its client: it is recorded once, its program is kept, and
// the same request sent again is answered without a model.
func TestForgeOutlivesItsClient(t *testing.T) {
	for name, c := range map[string]struct {
		repairs bool
		want    string
	}{"a first program": {false, "1 generated"}, "a repair": {true, "1 repaired"}} {
		synctest.Test(t, func(t *testing.T) {
			x := newLeftRig(t, c.repairs)
			x.hangUp()
			synctest.Wait()
			if _, running := x.r.Running(x.call.CallID); !running {
				t.Fatalf("%s: the call ended with its client: %+v", name, (<-x.done).Outcome)
			}
			if _, err := x.r.Call(t.Context(), x.call); !errors.Is(err, ErrKeyInUse) {
				t.Errorf("%s: the same request again, meanwhile: %v", name, err)
			}
			close(x.model.Block)
			left := <-x.done
			wantReply(t, name, left, c.want)
			asked := len(x.model.Requests())
			again, err := x.r.Call(t.Context(), x.call)
			if err != nil || !again.Replayed || decodedReply(t, again).CallID != left.CallID {
				t.Errorf("%s: the same request again: %s, %v", name, again.Body, err)
			}
			other := x.call
			other.CallID, other.IdempotencyKey = ids.New("call"), ""
			res, err := x.r.Call(t.Context(), other)
			if err != nil {
				t.Fatal(err)
			}
			wantReply(t, name+", another call", decodedReply(t, res), "1 persisted")
			if n := len(x.model.Requests()); n != asked {
				t.Errorf("%s: the model was asked %d times more", name, n-asked)
			}
			page, err := x.r.History(t.Context(), x.call.SessionID, store.HistoryQuery{})
			if want := 2 + asked - 1; err != nil || page.Size != want {
				t.Errorf("%s: %d records (%v), want %d", name, page.Size, err, want)
			}
		})
	}
}

// A call that goes on without its client ends at its own deadline, when it is canceled, and with the daemon.
func TestLeftCallsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(x *leftRig)
		want string
	}{
		"its time is over": {func(*leftRig) { time.Sleep(time.Hour) }, agent.ErrTimeout},
		"canceled":         {func(x *leftRig) { x.r.CancelRunning(x.call.CallID) }, agent.ErrCanceled},
		"shutdown": {func(x *leftRig) {
			over, stop := context.WithCancel(context.Background())
			stop()
			_ = x.r.Stop(over)
		}, agent.ErrCanceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := newLeftRig(t, false)
			x.hangUp()
			synctest.Wait()
			c.end(x)
			if got := <-x.done; got.Outcome.ErrorType != c.want {
				t.Errorf("%s: ended in %+v, want %s", name, got.Outcome, c.want)
			}
		})
	}
}

// A call that waits for its session's turn has asked no model: it ends with its client.
func TestQueuedCallEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newLeftRig(t, false)
		defer x.hangUp()
		ctx, hangUp := context.WithCancel(t.Context())
		queued := x.call
		queued.CallID, queued.IdempotencyKey = ids.New("call"), ""
		done := make(chan CallResult, 1)
		go func() {
			res, err := x.r.Call(ctx, queued)
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		synctest.Wait()
		hangUp()
		if got := decodedReply(t, <-done); got.Outcome.ErrorType != agent.ErrCanceled {
			t.Errorf("ended in %+v", got.Outcome)
		}
		close(x.model.Block)
		wantReply(t, "the call before it", <-x.done, "1 generated")
	})
}
