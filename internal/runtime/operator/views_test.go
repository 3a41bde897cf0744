package operator_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// spins is the body of a program that never ends by itself.
const spins = "\tif call.Arg(0, \"x\") == \"spin\" {\n\t\tfor {\n\t\t}\n\t}\n\treturn 1, nil"

// A running call is a valid cursor of the log: earlier running calls and all ended calls follow it.
func TestRunningCallAsCursor(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"r.m": {run(spins)}})
	id := g.conversation(t, "r")("m", "fine").SessionID
	var running []string
	for range 2 {
		other, err := g.CreateSession(t.Context(), sessions.Request{Role: "r"})
		if err != nil {
			t.Fatal(err)
		}
		callID, done, err := g.Start(runtime.CallRequest{SessionID: other.ID, Method: "m",
			Args: []json.RawMessage{json.RawMessage(`"spin"`)}})
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, callID)
		t.Cleanup(func() { _ = g.CancelRunning(callID); <-done })
	}
	var seen []string
	for before := ""; len(seen) < 4; before = seen[len(seen)-1] {
		page, err := g.op.ListCalls(t.Context(), store.CallQuery{Limit: 1, Before: before})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		seen = append(seen, page[0].CallID)
	}
	ended, err := g.op.ListCalls(t.Context(), store.CallQuery{SessionID: id})
	if err != nil || len(ended) != 1 {
		t.Fatalf("%d entries, %v", len(ended), err)
	}
	if want := []string{running[1], running[0], ended[0].CallID}; !slices.Equal(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}

// The reason why a call is not replayable has a code in lists, in a single call, and in the events of a resumed stream.
func TestCodeOfTheReason(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"r.m": {run("\treturn 1, nil")}})
	kept, gone := g.conversation(t, "r")("m"), g.conversation(t, "r")("m", 2)
	if err := g.DeleteSession(t.Context(), gone.SessionID, "ann"); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{kept.CallID: "", gone.CallID: "erased"} {
		if view, err := g.op.CallView(t.Context(), id); err != nil || view.ReplayableCode != want {
			t.Errorf("%s: code %q (%v), want %q", id, view.ReplayableCode, err, want)
		}
	}
	if page, err := g.op.ListCalls(t.Context(),
		store.CallQuery{}); err != nil || len(page) != 2 || page[0].ReplayableCode != "erased" ||
		page[1].ReplayableCode != "" {
		t.Errorf("the list is %+v (%v)", page, err)
	}
	err := g.op.Events(t.Context(), operator.EventQuery{After: kept.CallID}, func(e progress.Event) error {
		if text := string(e.Data); e.ID != gone.CallID || !strings.Contains(text, `"replayable_code":"erased"`) ||
			!strings.Contains(text, `"args":[]`) {
			t.Errorf("the stream has %s: %s", e.ID, text)
		}
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		t.Error(err)
	}
}
