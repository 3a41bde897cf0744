package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stepped returns an App with steps that record their names when they are undone.
func stepped(undone *[]string, undo map[string]func(context.Context) error, names ...string) *App {
	a := &App{stopped: make(chan struct{})}
	for _, name := range names {
		a.onStop(name, func(ctx context.Context) error {
			*undone = append(*undone, name)
			if u := undo[name]; u != nil {
				return u(ctx)
			}
			return nil
		})
	}
	return a
}

// Steps are undone once, in reverse, even if one fails.
func TestStopRunsEveryStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var undone []string
		broken := errors.New("broken")
		a := stepped(&undone, map[string]func(context.Context) error{"b": func(context.Context) error { return broken }}, "a", "b", "c")
		for range 2 {
			if err := a.Stop(t.Context()); !errors.Is(err, broken) {
				t.Errorf("got %v, want %v", err, broken)
			}
		}
		if !slices.Equal(undone, []string{"c", "b", "a"}) {
			t.Errorf("undone: %q", undone)
		}
	})
}

// Stop returns when ctx ends, and names the step that hangs. The other steps still run, and a second Stop waits for
// them.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var undone []string
		release := make(chan struct{})
		a := stepped(&undone, map[string]func(context.Context) error{"b": func(context.Context) error { <-release; return nil }}, "a", "b", "c")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		err := a.Stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "b did not end in time") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 3*time.Second { // of the bubble's clock
			t.Errorf("Stop took %s", took)
		}
		again := make(chan error)
		go func() { again <- a.Stop(t.Context()) }()
		synctest.Wait()
		close(release)
		if err := <-again; err != nil {
			t.Errorf("the second Stop: %v", err)
		}
		if !slices.Equal(undone, []string{"c", "b", "a"}) {
			t.Errorf("undone: %q", undone)
		}
	})
}

// Running calls have seven tenths of the time, or unlimited time without a deadline.
func TestMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		ctx, done := most(ctx)
		defer done()
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != 7*time.Second {
			t.Errorf("%s are left", time.Until(deadline))
		}
		free, done := most(t.Context())
		defer done()
		if _, ok := free.Deadline(); ok {
			t.Error("a deadline out of nothing")
		}
	})
}
