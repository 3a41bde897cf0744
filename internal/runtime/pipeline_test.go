package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// slowDisk is a store whose calls have their place in the order at once, and are durable when the test says so.
type slowDisk struct {
	store.Namespace
	ordered chan string // ids of calls
	durable chan error
}

func (d *slowDisk) CommitCall(ctx context.Context, c *store.CallCommit) error {
	if err := d.Namespace.CommitCall(ctx, c); err != nil {
		return err
	}
	d.ordered <- c.Log.CallID
	return <-d.durable
}

// unsettled is a store whose Settled waits for the gate.
type unsettled struct {
	store.Store
	gate chan struct{} // closed when it returns err
	err  error
}

func (u *unsettled) Settled() error {
	<-u.gate
	return u.err
}

// Readers of the feed see durable calls in the order of the log, whichever call ends first. After a failed sync they
// read what was kept.
func TestFeedFollowsTheLog(t *testing.T) {
	t.Parallel()
	for _, failed := range []error{nil, store.ErrReadOnly} {
		r, _ := scripted(t, &runtimetest.Box{}, nil, nil)
		kept := &unsettled{r.env.Options.Store, make(chan struct{}), failed}
		disk := &slowDisk{r.env.Store, make(chan string), make(chan error)}
		r.env.Options.Store, r.env.Store = kept, disk
		reader, stop, err := r.Feed().Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		ended := make(chan struct{}, 2)
		for _, id := range []string{"call_1", "call_2"} {
			session, err := r.CreateSession(t.Context(), sessions.Request{Role: "r"})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = r.Call(t.Context(), CallRequest{SessionID: session.ID, CallID: id, Method: "a=",
					Args: []json.RawMessage{json.RawMessage("1")}})
				ended <- struct{}{}
			}()
			<-disk.ordered
		}
		for range 2 { // either may be the first
			disk.durable <- nil
			<-ended
		}
		if reader.Waiting() > 0 {
			t.Error("calls are shown before they are settled")
		}
		close(kept.gate)
		var got []string
		for len(got) < 2 {
			calls, behind, err := reader.Next(t.Context())
			if err != nil || behind != (failed != nil) {
				t.Fatalf("behind %t, %v, with a sync that ended with %v", behind, err, failed)
			}
			if behind {
				break
			}
			for _, c := range calls {
				got = append(got, c.CallID)
			}
		}
		if failed == nil && !slices.Equal(got, []string{"call_1", "call_2"}) {
			t.Errorf("readers saw %v", got)
		}
	}
}

// A store that reports a call as soon as it is watched.
type busy struct{ store.Store }

func (b busy) Watch(from store.Cursor, changed func(store.Change)) (stop func(), err error) {
	stop, err = b.Store.Watch(from, changed)
	changed(store.Change{Namespace: agent.DefaultNamespace, Kind: store.ChangedCall, CallID: "call_1",
		Log: &agent.LogEntry{CallID: "call_1"}})
	return stop, err
}

// A reader that subscribes while a call is committed reads the call, and does not keep other readers out.
func TestFeedBeginsAmidCalls(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{}, nil, nil)
	r.env.Options.Store = busy{r.env.Options.Store}
	read := make(chan string, 1)
	go func() {
		reader, stop, err := r.Feed().Subscribe()
		if err != nil {
			read <- err.Error()
			return
		}
		defer stop()
		calls, _, err := reader.Next(t.Context())
		if err != nil {
			read <- err.Error()
			return
		}
		read <- calls[0].CallID
	}()
	select {
	case got := <-read:
		if got != "call_1" {
			t.Errorf("the reader saw %s", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the reader waits")
	}
}

// A session's next call begins when the previous one has its place in the order, and sees its changes. No call is
// answered, or repeated under its idempotency key, before it is durable. A call whose sync fails has no answer.
func TestNextCallDoesNotWaitForTheDisk(t *testing.T) {
	r, _ := scripted(t, &runtimetest.Box{}, nil, nil)
	session, err := r.CreateSession(t.Context(), sessions.Request{Role: "r"})
	if err != nil {
		t.Fatal(err)
	}
	disk := &slowDisk{r.env.Store, make(chan string), make(chan error)}
	r.env.Store = disk
	requests := []CallRequest{{Method: "a=", CallID: "call_1", IdempotencyKey: "k", BodyHash: "h"},
		{Method: "b=", CallID: "call_2"}, {Method: "a=", CallID: "call_3"}}
	type answer struct {
		CallResult
		err error
	}
	answers := make([]chan answer, len(requests))
	for i := range requests {
		q := &requests[i]
		q.SessionID, q.Args = session.ID, []json.RawMessage{json.RawMessage(`"of ` + q.CallID + `"`)}
		answers[i] = make(chan answer, 1)
		go func() {
			res, err := r.Call(t.Context(), *q)
			answers[i] <- answer{res, err}
		}()
		if got := <-disk.ordered; got != q.CallID {
			t.Fatalf("call %s has its place, want %s", got, q.CallID)
		}
	}
	if got, err := r.env.Store.Context(t.Context(), session.ID); err != nil || string(got["a"]) != `"of call_3"` ||
		string(got["b"]) != `"of call_2"` {
		t.Errorf("the next call would see the context %s, %v", got, err)
	}
	for i, q := range requests {
		if _, running := r.Running(q.CallID); !running || len(answers[i]) > 0 {
			t.Errorf("%s is shown as ended before it is durable", q.CallID)
		}
	}
	if _, err := r.Call(t.Context(), requests[0]); !errors.Is(err, ErrKeyInUse) {
		t.Errorf("the same request again: %v, want %v", err, ErrKeyInUse)
	}
	ended := func() (got answer) {
		select {
		case got = <-answers[0]:
		case got = <-answers[1]:
		case got = <-answers[2]:
		}
		return got
	}
	disk.durable <- store.ErrReadOnly
	if got := ended(); !errors.Is(got.err, store.ErrReadOnly) || len(got.Body) > 0 {
		t.Errorf("a call that is not durable was answered: %s, %v", got.Body, got.err)
	}
	for range 2 {
		disk.durable <- nil
		if got := ended(); got.err != nil || !got.OK {
			t.Errorf("%s, %v", got.Body, got.err)
		}
	}
}
