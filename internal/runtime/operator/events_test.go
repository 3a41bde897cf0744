package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

const (
	add       = "\ta, _ := call.Arg(0, \"a\").(float64)\n\tb, _ := call.Arg(1, \"b\").(float64)\n\treturn a + b, nil"
	boomOnBad = "\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn call.Arg(0, \"x\"), nil"
	repaired  = "\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"repaired\", nil\n\t}\n\treturn call.Arg(0, \"x\"), nil"
)

var errEnough = errors.New("enough")

// A running call reports its stages, even to late subscribers, and ends with its outcome.
func TestCallEvents(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"r.m": {run(boomOnBad), run(repaired)}})
	call := g.conversation(t, "r")
	call("m", 1)
	g.model.Block = make(chan struct{})
	s, err := g.CreateSession(t.Context(), sessions.Request{Role: "r"})
	if err != nil {
		t.Fatal(err)
	}
	id, done, err := g.Start(runtime.CallRequest{SessionID: s.ID, Method: "m",
		Args: []json.RawMessage{json.RawMessage(`"bad"`)}})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	// an unknown id means the beginning; each event comes once
	err = g.op.CallEvents(t.Context(), id, "-3", func(e progress.Event) error {
		if kinds = append(kinds, e.Type); e.Type == progress.Forging {
			close(g.model.Block)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if got, want := strings.Join(kinds, " "),
		"call.attempt_failed call.forging call.gate call.running call.finished"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	kinds = nil
	if err := g.op.CallEvents(t.Context(), id, "",
		func(e progress.Event) error { kinds = append(kinds, e.Type); return nil }); err != nil || len(kinds) != 1 {
		t.Errorf("events of a call that has ended: %v (%v), want its end", kinds, err)
	}
}

// A call that ends after the subscription exists is emitted, however soon.
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

// A stream without a resume point starts at its subscription, even if it falls behind before its first event.
func TestEventsFallBehindAtOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"calculator.add": {run(add)}})
	call := g.conversation(t, "calculator")
	for range 3 {
		g.Feed().Passed(call("add", 1, 2).CallID)
	}
	ended, got := "", ""
	q := operator.EventQuery{Listens: func() {
		ended = call("add", 1, 2).CallID
		g.Feed().Lose()
	}}
	err := g.op.Events(t.Context(), q, func(e progress.Event) error {
		got = e.ID
		return errEnough
	})
	if !errors.Is(err, errEnough) || got != ended || got == "" {
		t.Errorf("got the event %q of the call %q, %v", got, ended, err)
	}
}

// A resumed stream loses no call and repeats none.
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

// A stream that is resumed far behind gets everything, page by page. If the log does not have its resume point, it gets
// the newest calls.
func TestEventsResumeFarBehind(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"calculator.add": {run(add)}})
	call := g.conversation(t, "calculator")
	want := []string{call("add", 1, 2).CallID}
	was, err := g.memory.Call(t.Context(), want[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_700 {
		entry := was.Log
		entry.CallID, entry.Args, entry.Kwargs = fmt.Sprintf("call_%06d", i), nil, nil // erased
		if err := g.memory.CommitCall(t.Context(), &store.CallCommit{Log: entry}); err != nil {
			t.Fatal(err)
		}
		want = append(want, entry.CallID)
	}
	for after, behind := range map[string][]string{want[0]: want[1:], want[700]: want[701:],
		want[10_650]: want[10_651:], "call_unknown": want[len(want)-10_000:]} {
		var got []string
		err := g.op.Events(t.Context(), operator.EventQuery{After: after}, func(e progress.Event) error {
			if data := string(e.Data); !strings.Contains(data, `"args":[]`) || !strings.Contains(data, `"kwargs":{}`) {
				t.Fatalf("the event's data is %s", data)
			}
			if got = append(got, e.ID); len(got) == len(behind) {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) || !slices.Equal(got, behind) {
			t.Errorf("behind %s: %d events, the first %s, want %d, the first %s (%v)", after, len(got), got[0],
				len(behind), behind[0], err)
		}
	}
	first := ""
	if err := g.op.Events(t.Context(), operator.EventQuery{Listens: g.Feed().Lose}, func(e progress.Event) error {
		first = e.ID
		return errEnough
	}); !errors.Is(err, errEnough) || first != want[len(want)-10_000] {
		t.Errorf("a stream that falls behind before its first event begins at %s (%v)", first, err)
	}
	// a reader whose streams break early still makes progress: the first event takes one page, however much was missed
	pages := &pageCounter{Store: g.o.Store}
	g.o.Store = pages
	op, err := operator.New(g.o)
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Events(t.Context(), operator.EventQuery{After: want[0]},
		func(progress.Event) error { return errEnough }); !errors.Is(err, errEnough) || pages.read != 1 {
		t.Errorf("%d pages are read for the first event (%v), want 1", pages.read, err)
	}
}

// pageCounter is a store that counts the pages read from the log.
type pageCounter struct {
	store.Store
	read int
}

type countedPages struct {
	store.Namespace
	of *pageCounter
}

func (c *pageCounter) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := c.Store.Namespace(name)
	return countedPages{n, c}, err
}

func (n countedPages) ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	n.of.read++
	return n.Namespace.ListCalls(ctx, q)
}

func (n countedPages) CallsAfter(ctx context.Context, after string, limit int) ([]agent.LogEntry, error) {
	n.of.read++
	return n.Namespace.CallsAfter(ctx, after, limit)
}

// A stream may be resumed at a call that its replica's feed has not announced yet. Calls that the feed announces later,
// but that precede it, are not sent again.
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
		for _, id := range ids[1:] { // the feed may announce the last one again, which must not be sent
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
