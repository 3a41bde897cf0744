package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

const (
	add       = "\ta, _ := call.Arg(0, \"a\").(float64)\n\tb, _ := call.Arg(1, \"b\").(float64)\n\treturn a + b, nil"
	boomOnBad = "\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn call.Arg(0, \"x\"), nil"
	repaired  = "\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"repaired\", nil\n\t}\n\treturn call.Arg(0, \"x\"), nil"
)

var errEnough = errors.New("enough")

// A running call reports what it does, to those who come late too, and ends with its outcome.
func TestCallEvents(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"r.m": {run(boomOnBad), run(repaired)}})
	call := g.conversation(t, "r")
	call("m", 1)
	g.model.Block = make(chan struct{})
	s, err := g.CreateSession(t.Context(), runtime.SessionRequest{Role: "r"})
	if err != nil {
		t.Fatal(err)
	}
	id, done, err := g.Start(runtime.CallRequest{SessionID: s.ID, Method: "m", Args: []json.RawMessage{json.RawMessage(`"bad"`)}})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	err = g.op.CallEvents(t.Context(), id, "-3", func(e progress.Event) error { // no id of ours: from the beginning, and each event once
		if kinds = append(kinds, e.Type); e.Type == progress.Forging {
			close(g.model.Block)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if got, want := strings.Join(kinds, " "), "call.attempt_failed call.forging call.gate call.running call.finished"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	kinds = nil
	if err := g.op.CallEvents(t.Context(), id, "", func(e progress.Event) error { kinds = append(kinds, e.Type); return nil }); err != nil || len(kinds) != 1 {
		t.Errorf("events of a call that has ended: %v (%v), want its end", kinds, err)
	}
}

// What ends once a stream listens is passed, however soon that is.
func TestEventsListen(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"calculator.add": {run(add)}})
	call := g.conversation(t, "calculator")
	ended, got := "", ""
	q := operator.EventQuery{Listens: func() { ended = call("add", 1, 2).CallID }}
	err := g.op.Events(t.Context(), q, func(e progress.Event) error {
		got = e.ID
		return errEnough
	})
	if !errors.Is(err, errEnough) || got != ended || got == "" {
		t.Errorf("got the event %q of the call %q, %v", got, ended, err)
	}
}

// A stream that is resumed loses nothing and doubles nothing.
func TestEventsResume(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"calculator.add": {run(add)}})
	call := g.conversation(t, "calculator")
	var want []string
	for range 5 {
		want = append(want, call("add", 1, 2).CallID)
	}
	var got []string
	take := func(n int) func(progress.Event) error {
		return func(e progress.Event) error {
			if got = append(got, e.ID); len(got) == n {
				return errEnough
			}
			return nil
		}
	}
	if err := g.op.Events(t.Context(), operator.EventQuery{After: want[0]}, take(2)); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- g.op.Events(ctx, operator.EventQuery{After: got[1]}, func(e progress.Event) error {
			if len(got) == 2 {
				close(first)
			}
			return take(7)(e)
		})
	}()
	<-first
	for range 3 {
		want = append(want, call("add", 1, 2).CallID)
	}
	if err := <-ended; !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	if strings.Join(got, " ") != strings.Join(want[1:], " ") {
		t.Errorf("got\n%v, want\n%v", got, want[1:])
	}
}

// What a stream is resumed behind may be ahead of the feed of the replica that resumes it, which announces the calls before it later: they are
// not sent again.
func TestEventsResumeAheadOfTheFeed(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"calculator.add": {run(add)}})
	call := g.conversation(t, "calculator")
	var ids []string
	for range 4 {
		ids = append(ids, call("add", 1, 2).CallID)
	}
	for _, announced := range []string{"", ids[0], ids[1]} {
		g.Feed().Passed(announced)
		var got []string
		subscribed, ended := make(chan struct{}), make(chan error)
		go func() {
			ended <- g.op.Events(t.Context(), operator.EventQuery{After: ids[2]}, func(e progress.Event) error {
				if got = append(got, e.ID); len(got) == 1 {
					close(subscribed)
				}
				if len(got) == 2 {
					return errEnough
				}
				return nil
			})
		}()
		<-subscribed                 // and caught up with the last one
		for _, id := range ids[1:] { // which may be what was announced last, and is not again
			if id == announced {
				continue
			}
			was, err := g.memory.Call(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			g.Feed().Announce(&was.Log)
		}
		next := call("add", 1, 2).CallID
		if err := <-ended; !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		if want := []string{ids[3], next}; strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("with the feed at %q: got %v, want %v", announced, got, want)
		}
		ids = append(ids[:0:0], append([]string{ids[0], ids[1]}, ids[3], next)...)
	}
}
