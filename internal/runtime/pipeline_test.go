package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
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

// A session's next call begins when the one before has its place in the order, and sees what it changed. No call is answered, published, or
// repeated under its idempotency key before it is durable; one whose sync fails has no answer.
func TestNextCallDoesNotWaitForTheDisk(t *testing.T) {
	r, _ := scripted(t, &runtimetest.Box{}, nil, nil)
	session, err := r.CreateSession(t.Context(), SessionRequest{Role: "r"})
	if err != nil {
		t.Fatal(err)
	}
	disk := &slowDisk{r.store, make(chan string), make(chan error)}
	r.store = disk
	reader, stop := r.Feed().Subscribe()
	defer stop()
	requests := []CallRequest{{Method: "a=", CallID: "call_1", IdempotencyKey: "k", BodyHash: "h"}, {Method: "b=", CallID: "call_2"}, {Method: "a=", CallID: "call_3"}}
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
	if got, err := r.store.Context(t.Context(), session.ID); err != nil || string(got["a"]) != `"of call_3"` || string(got["b"]) != `"of call_2"` {
		t.Errorf("the next call would see the context %s, %v", got, err)
	}
	for i, q := range requests {
		if _, running := r.Running(q.CallID); !running || len(answers[i]) > 0 || reader.Waiting() > 0 {
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
	if got := ended(); !errors.Is(got.err, store.ErrReadOnly) || len(got.Body) > 0 || reader.Waiting() > 0 {
		t.Errorf("a call that is not durable was answered: %s, %v", got.Body, got.err)
	}
	for range 2 {
		disk.durable <- nil
		if got := ended(); got.err != nil || !got.OK {
			t.Errorf("%s, %v", got.Body, got.err)
		}
	}
	if n := reader.Waiting(); n != 2 {
		t.Errorf("%d calls were published, want 2", n)
	}
}
