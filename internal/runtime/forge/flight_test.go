package forge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
)

// A flight ends for nobody while one of its users is left, and for good with the last.
func TestLeaveFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fs flights
		var ended error
		forge := func(ctx context.Context, _ *meter) flightResult {
			<-ctx.Done()
			ended = context.Cause(ctx)
			return flightResult{Last: "left"}
		}
		one, leads, leaveOne := fs.join(t.Context(), "key", forge)
		two, leadsToo, leaveTwo := fs.join(t.Context(), "key", forge)
		if one != two || !leads || leadsToo {
			t.Fatalf("the second did not join: leaders %v and %v", leads, leadsToo)
		}
		leaveOne()
		leaveOne() // counts once
		synctest.Wait()
		if ended != nil {
			t.Fatalf("the flight ended for the second: %v", ended)
		}
		leaveTwo()
		synctest.Wait()
		if !errors.Is(ended, interrupt.ErrCanceled) {
			t.Errorf("the flight ended with %v", ended)
		}
		if res, ok := one.wait(t.Context()); !ok || res.Last != "left" {
			t.Errorf("the result is %+v, %v", res, ok)
		}
		_, leads, leave := fs.join(t.Context(), "key", forge)
		if !leads {
			t.Error("a flight that everybody left was joined")
		}
		leave()
		fs.under.Wait()
		if len(fs.all) != 0 {
			t.Errorf("%d flights are remembered", len(fs.all))
		}
	})
}

// A user that is interrupted gets no result; the flight's own end is that of the daemon.
func TestWaitForFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fs flights
		life, end := context.WithCancelCause(t.Context())
		fl, _, leave := fs.join(life, "key", func(ctx context.Context, _ *meter) flightResult {
			<-ctx.Done()
			return flightResult{Last: context.Cause(ctx).Error()}
		})
		defer leave()
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		if _, ok := fl.wait(gone); ok {
			t.Error("a user that is gone got a result")
		}
		end(interrupt.ErrShutdown)
		if res, ok := fl.wait(t.Context()); !ok || res.Last != interrupt.ErrShutdown.Error() {
			t.Errorf("the flight ended with %+v, %v", res, ok)
		}
	})
}

// A call learns only the types of the errors of programs that were written for another owner's call.
func TestWhatAnotherOwnersFlightShows(t *testing.T) {
	t.Parallel()
	refused, failed := agent.Failed(agent.ErrInvalidCode, "quotes the program"),
		agent.Failed(agent.ErrProvider, "quotes the request")
	for _, tt := range []struct {
		failure agent.Outcome
		class   agent.Class
		want    string
	}{{refused, agent.ClassIntrinsic, refusedForAnother}, {failed, agent.ClassExtrinsic,
		unansweredForAnother}} {
		res := flightResult{Owner: "ann", Failure: &tt.failure, Class: tt.class, System: "s", User: "u",
			Attempts: []agent.AttemptFailure{{ErrorMessage: "quotes", Hint: "quotes"}}}
		if got := res.seenBy("ben", "call_ben"); got.Failure.ErrorMessage != tt.want ||
			got.Failure.ErrorType != tt.failure.ErrorType || got.Failure.Retriable != tt.failure.Retriable ||
			got.User != "" || got.Attempts[0].Hint != "" {
			t.Errorf("%s: %+v", tt.failure.ErrorType, got)
		}
		if got := res.seenBy("ann", "call_ann"); got.Failure.ErrorMessage != tt.failure.ErrorMessage || got.User == "" {
			t.Errorf("%s, for its owner: %+v", tt.failure.ErrorType, got)
		}
	}
}

// A request counts once, from the moment that it is sent.
func TestMeter(t *testing.T) {
	t.Parallel()
	var m meter
	first, second := m.sent(), m.sent()
	if got := m.read().ModelRequests; got != 2 {
		t.Errorf("two were sent: got %d", got)
	}
	first(agent.Usage{ModelRequests: 1, PromptTokens: 5})
	if got := m.read(); got.ModelRequests != 2 || got.PromptTokens != 5 {
		t.Errorf("one was answered: got %+v", got)
	}
	second(agent.Usage{})
	if got := m.read(); got.ModelRequests != 1 || got.PromptTokens != 5 {
		t.Errorf("the other one never left: got %+v", got)
	}
}
