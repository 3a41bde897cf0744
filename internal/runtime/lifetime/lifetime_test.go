package lifetime

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
)

// A lifetime ends for the first of its causes, whether or not somebody waited before. So do the contexts derived from
// it.
func TestLifetimeEnds(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	endings := map[string]struct {
		end  func(l *Context, parent context.CancelCauseFunc)
		err  error
		want error
	}{
		"canceled": {func(l *Context, _ context.CancelCauseFunc) { l.Cancel(interrupt.ErrShutdown) },
			context.Canceled, interrupt.ErrShutdown},
		"parent": {func(_ *Context, parent context.CancelCauseFunc) { parent(gone) }, context.Canceled, gone},
		"time is over": {func(*Context, context.CancelCauseFunc) { time.Sleep(time.Minute) }, context.Canceled,
			interrupt.ErrCallTimeout},
		"call over": {func(l *Context, _ context.CancelCauseFunc) { l.Cancel(nil) }, context.Canceled,
			context.Canceled},
		"canceled, then its end": {func(l *Context, _ context.CancelCauseFunc) {
			l.Cancel(interrupt.ErrCanceled)
			l.Cancel(nil)
		}, context.Canceled, interrupt.ErrCanceled},
	}
	for name, e := range endings {
		for _, waited := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				parent, cut := context.WithCancelCause(context.WithValue(t.Context(), gone, "value"))
				defer cut(nil)
				var l, nested Context
				l.Begin(parent, time.Minute)
				defer l.Cancel(nil)
				nested.Begin(&l, 0)
				defer nested.Cancel(nil)
				var noticed atomic.Int32
				if waited {
					for _, c := range []*Context{&l, &nested} {
						context.AfterFunc(c, func() { noticed.Add(1) })
						if c.Err() != nil || context.Cause(c) != nil {
							t.Fatalf("%s: ended too early: %v", name, c.Err())
						}
					}
				} else if nested.Err() != nil {
					t.Fatalf("%s: ended too early: %v", name, nested.Err())
				}
				e.end(&l, cut)
				synctest.Wait()
				for _, c := range []*Context{&l, &nested} {
					child, stop := context.WithCancel(c)
					stop()
					for what, ctx := range map[string]context.Context{"its own": c, "a child's": child} {
						if got := context.Cause(ctx); !errors.Is(ctx.Err(), e.err) || !errors.Is(got, e.want) {
							t.Errorf("%s, waited %v, %s: %v, cause %v, want %v", name, waited, what, ctx.Err(), got,
								e.want)
						}
					}
					select {
					case <-c.Done():
					default:
						t.Errorf("%s, waited %v: not done", name, waited)
					}
					if c.Value(gone) != "value" {
						t.Errorf("%s, waited %v: the parent's values are gone", name, waited)
					}
				}
				if waited && noticed.Load() != 2 {
					t.Errorf("%s: %d of 2 who waited noticed", name, noticed.Load())
				}
			})
		}
	}
}

// A call that asked a model outlives its client, however late somebody waits for its end. It does not outlive anything
// else.
func TestLifetimeOutlivesItsClient(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		asked bool
		cause error
		end   func(l *Context)
		want  error // nil: it goes on
	}{
		"its client goes":                       {true, nil, func(*Context) {}, nil},
		"its client goes before a model writes": {false, nil, func(*Context) {}, context.Canceled},
		"who ends it says why":                  {true, gone, func(*Context) {}, gone},
		"canceled": {true, nil, func(l *Context) { l.Cancel(interrupt.ErrCanceled) },
			interrupt.ErrCanceled},
		"time is over": {true, nil, func(*Context) { time.Sleep(time.Minute) },
			interrupt.ErrCallTimeout},
	} {
		for _, waited := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				client, leave := context.WithCancelCause(t.Context())
				defer leave(nil)
				var asked atomic.Bool
				var l, nested Context
				l.Begin(client, time.Minute)
				l.Stays = &asked
				defer l.Cancel(nil)
				nested.Begin(&l, 0)
				defer nested.Cancel(nil)
				if waited {
					context.AfterFunc(&nested, func() {})
				}
				asked.Store(c.asked)
				leave(c.cause)
				synctest.Wait()
				c.end(&l)
				synctest.Wait()
				for what, ctx := range map[string]context.Context{"it": &l, "a nested one": &nested} {
					if got := ctx.Err(); (got == nil) != (c.want == nil) {
						t.Errorf("%s, waited %v: %s: %v", name, waited, what, got)
					}
					if got := context.Cause(ctx); c.want != nil && !errors.Is(got, c.want) {
						t.Errorf("%s, waited %v: %s: the cause is %v, want %v", name, waited, what, got, c.want)
					}
				}
			})
		}
	}
}

// A call that nobody waits for allocates nothing for its context.
func TestLifetimeIsFree(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &Context{}
	if n := testing.AllocsPerRun(100, func() {
		*l = Context{}
		l.Begin(parent, time.Minute)
		if l.Err() != nil || context.Cause(l) != nil {
			t.Error("it has ended")
		}
		l.Cancel(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
