package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

var errEnough = errors.New("enough")

// a call under way tells what it does, to those who come late too, and ends with its outcome.
func TestCallEvents(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"r.m": {run(boomOnBad), run(mends)}})
	_, call := conversation(t, r, SessionRequest{Role: "r"})
	call("m", 1)
	model.block = make(chan struct{})
	s, err := r.CreateSession(t.Context(), SessionRequest{Role: "r"})
	if err != nil {
		t.Fatal(err)
	}
	id, done, err := r.Start(CallRequest{SessionID: s.ID, Method: "m", Args: []json.RawMessage{json.RawMessage(`"bad"`)}})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	err = r.CallEvents(t.Context(), id, "-3", func(e Event) error { // no id of ours: from the beginning, and each event once
		if kinds = append(kinds, e.Type); e.Type == EventForging {
			close(model.block)
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
	if err := r.CallEvents(t.Context(), id, "", func(e Event) error { kinds = append(kinds, e.Type); return nil }); err != nil || len(kinds) != 1 {
		t.Errorf("a call that has ended tells %v (%v), want its end", kinds, err)
	}
}

// a stream that is resumed loses nothing and doubles nothing.
func TestEventsResume(t *testing.T) {
	r, _ := newRuntime(t, map[string][]string{"calculator.add": {run(add)}})
	_, call := conversation(t, r, SessionRequest{Role: "calculator"})
	var want []string
	for range 5 {
		want = append(want, call("add", 1, 2).CallID)
	}
	var got []string
	take := func(n int) func(Event) error {
		return func(e Event) error {
			if got = append(got, e.ID); len(got) == n {
				return errEnough
			}
			return nil
		}
	}
	if err := r.Events(t.Context(), want[0], take(2)); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- r.Events(ctx, got[1], func(e Event) error {
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
