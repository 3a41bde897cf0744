package runtime

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
)

// The memory of recent calls is bounded, in bytes and in number, and still distinguishes questions.
func TestRecentCalls(t *testing.T) {
	t.Parallel()
	var rc recentCalls
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	// a string encodes
	quoted := func(s string) []json.RawMessage { b, _ := json.Marshal(s); return []json.RawMessage{b} }
	turn := func(args []json.RawMessage, kwargs string) evolve.Turn {
		a, k := rc.remembered(args, json.RawMessage(kwargs))
		size := len(k)
		for _, x := range a {
			size += len(x)
		}
		if size > maxRecentArgs+64 {
			t.Errorf("%d bytes are remembered", size)
		}
		return recentCall{id: "c", at: at, args: a, kwargs: k, troubled: true}.turn()
	}
	long := strings.Repeat("all the same words ", 10_000)
	p := agent.DefaultPolicy().UserCorrection
	for _, tt := range []struct {
		name        string
		before, now evolve.Turn
		dispatch    bool
		want        string
	}{
		{"short", turn(quoted("action movies"), `{}`), turn(quoted("action movies"), `{}`), false, evolve.SignalReask},
		{"short, another", turn(quoted("action movies"), `{}`), turn(quoted("rain in Spain"), `{}`), false, ""},
		{"long", turn(quoted(long), `{}`), turn(quoted(long), `{}`), false, evolve.SignalReask},
		{"long, another end", turn(quoted(long+"a"), `{}`), turn(quoted(long+"b"), `{}`), false, evolve.SignalReask},
		{"long, other words", turn(quoted(long), `{}`), turn(quoted(strings.Repeat("quite other talk ", 10_000)), `{}`),
			false, ""},
		{"many long ones", turn(append(quoted(long), quoted(long)...), `{"a":1}`),
			turn(append(quoted(long), quoted(long)...), `{"a":1}`), false, evolve.SignalReask},
	} {
		if got := evolve.Correction(tt.before, tt.now, tt.dispatch, p); got != tt.want {
			t.Errorf("%s: got %q, want %q (overlap %.2f)", tt.name, got, tt.want, evolve.Overlap(tt.before, tt.now))
		}
	}
	// The same long words to a tool that served are not a correction: the hash shows that they are the same.
	fine, again := turn(quoted(long+"a"), `{}`), turn(quoted(long+"a"), `{}`)
	fine.Troubled = false
	if got := evolve.Correction(fine, again, true, p); got != "" {
		t.Errorf("the same again: got %q", got)
	}
	if got := evolve.Correction(fine, turn(quoted(long+"b"), `{}`), true, p); got != evolve.SignalDispatch {
		t.Errorf("in other words: got %q", got)
	}

	key := func(i int) recentKey { return recentKey{fmt.Sprint("sess_", i), "r", "m"} }
	for i := range 5 * maxRecentCalls {
		rc.swap(key(i), recentCall{id: fmt.Sprint(i), at: at})
	}
	if n := len(rc.young) + len(rc.old); n > 2*maxRecentCalls {
		t.Errorf("%d calls are remembered", n)
	}
	newest := 5*maxRecentCalls - 1
	if before, known, since := rc.swap(key(newest-maxRecentCalls/2),
		recentCall{id: "x", at: at}); !known || before.id != fmt.Sprint(newest-maxRecentCalls/2) || !since.Equal(at) {
		t.Errorf("a recent call: got %+v, %v, since %v", before, known, since)
	}
	if _, known, _ := rc.swap(key(0), recentCall{id: "y", at: at}); known {
		t.Error("the oldest call should be gone")
	}
}
