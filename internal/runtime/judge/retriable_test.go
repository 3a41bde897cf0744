package judge

import (
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Which failures may pass by themselves.
func TestRetriable(t *testing.T) {
	t.Parallel()
	authored := func(errorType string, retriable bool) *sandbox.AuthoredError {
		return &sandbox.AuthoredError{Type: errorType, Message: "m", Retriable: retriable}
	}
	below := func(errorType string, retriable bool) map[string]attempt.Excused {
		return map[string]attempt.Excused{errorType: {Class: agent.ClassExtrinsic, Retriable: retriable}}
	}
	tests := []struct {
		name      string
		authored  *sandbox.AuthoredError
		errorType string
		class     agent.Class
		a         attempt.Attempt
		want      bool
	}{
		{"its own error", authored("low_utility", false), "low_utility", agent.ClassAuthored, attempt.Attempt{}, false},
		{"its own error, which it calls retriable", authored("closed", true), "closed", agent.ClassAuthored,
			attempt.Attempt{}, true},
		{"its own error of a type of ours", authored(agent.ErrProvider, false), agent.ErrProvider, agent.ClassAuthored,
			attempt.Attempt{}, false},
		{"an outage that it reports", authored("fetch_failed", false), "fetch_failed", agent.ClassExtrinsic,
			attempt.Attempt{}, true},
		{"a panic over an outage", nil, agent.ErrExecution, agent.ClassExtrinsic, attempt.Attempt{}, true},
		{"a value that breaks the contract over an outage", nil, agent.ErrContractViolation, agent.ClassExtrinsic,
			attempt.Attempt{}, true},
		{"a panic", nil, agent.ErrExecution, agent.ClassIntrinsic, attempt.Attempt{}, false},
		{"drift", nil, agent.ErrExecution, agent.ClassAdaptive, attempt.Attempt{}, false},
		{"no Go", nil, agent.ErrInvalidCode, agent.ClassIntrinsic, attempt.Attempt{}, true},
		{"a runner that died", nil, agent.ErrRunnerCrash, agent.ClassIntrinsic, attempt.Attempt{}, true},
		{"its own run time", nil, agent.ErrTimeout, agent.ClassIntrinsic, attempt.Attempt{}, false},
		{"time spent waiting", nil, agent.ErrTimeout, agent.ClassExtrinsic, attempt.Attempt{}, true},
		{"its own memory", nil, agent.ErrResourceExhausted, agent.ClassIntrinsic, attempt.Attempt{}, false},
		{"too large a response", authored(agent.ErrResourceExhausted, false), agent.ErrResourceExhausted,
			agent.ClassExtrinsic, attempt.Attempt{}, false},
		{"a share without room", authored("other", false), "other", agent.ClassExtrinsic, attempt.Attempt{NoRoom: true},
			false},
		{"an approval that is missing", nil, agent.ErrDenied, agent.ClassExtrinsic, attempt.Attempt{}, false},
		{"the model was away", authored(agent.ErrProvider, false), agent.ErrProvider, agent.ClassExtrinsic,
			attempt.Attempt{ModelFailed: true, Failed: below(agent.ErrProvider, true)}, true},
		{"the model refused the key", authored(agent.ErrProvider, false), agent.ErrProvider, agent.ClassExtrinsic,
			attempt.Attempt{ModelFailed: true, ModelFinal: true, Failed: below(agent.ErrProvider, false)}, false},
		{"the model refused the key, in other words", authored("no_answer", false), "no_answer", agent.ClassExtrinsic,
			attempt.Attempt{ModelFailed: true, ModelFinal: true}, false},
		{"a nested call that may pass", authored("upstream", false), "upstream", agent.ClassExtrinsic,
			attempt.Attempt{Failed: below("upstream", true)}, true},
		{"a nested call that does not", authored(agent.ErrDenied, false), agent.ErrDenied, agent.ClassExtrinsic,
			attempt.Attempt{Failed: below(agent.ErrDenied, false)}, false},
	}
	for _, tt := range tests {
		j := Judged{Attempt: tt.a, Outcome: agent.Failed(tt.errorType, "m"), Class: tt.class}
		j.Result.Authored = tt.authored
		if got := j.retriable(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// A timeout counts against the program if it used a second of its caller's time itself, or would sleep beyond it.
func TestOverran(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                string
		failure             *sandbox.Failure
		ran, slept, granted time.Duration
		want                bool
	}{
		{"it returned", nil, time.Minute, 0, time.Minute, false},
		{"it ran until the end", &sandbox.Failure{Type: agent.ErrTimeout, Ours: true}, time.Second, 0, time.Minute,
			true},
		{"it ran and slept until the end", &sandbox.Failure{Type: agent.ErrTimeout, Ours: true}, 400 * time.Millisecond,
			600 * time.Millisecond, time.Minute, true},
		{"it had begun only", &sandbox.Failure{Type: agent.ErrTimeout, Ours: true}, 999 * time.Millisecond, 0,
			time.Minute, false},
		{"it waited", &sandbox.Failure{Type: agent.ErrTimeout, Ours: true, Waiting: true}, time.Minute, 0, time.Minute,
			false},
		{"its run time was over", &sandbox.Failure{Type: agent.ErrTimeout}, time.Minute, 0, time.Minute, false},
		{"it was canceled", &sandbox.Failure{Type: agent.ErrCanceled, Ours: true}, time.Minute, 0, time.Minute, false},
		{"it would sleep", &sandbox.Failure{Type: agent.ErrTimeout, Sleeps: 2 * time.Second}, 0, 0, time.Second, true},
		{"it would sleep a little", &sandbox.Failure{Type: agent.ErrTimeout, Sleeps: 999 * time.Millisecond}, 0, 0,
			time.Second, false},
		{"it would sleep, and has no time", &sandbox.Failure{Type: agent.ErrTimeout, Sleeps: time.Minute}, 0, 0,
			999 * time.Millisecond, false},
	} {
		a := attempt.Attempt{Granted: tt.granted}
		a.Result.Failure, a.Result.Timing.Run, a.Result.Effects.Slept = tt.failure, tt.ran, tt.slept
		if got := a.Overran(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// A call whose time is over was waiting, unless a program used it: its own, or one of a call below it.
func TestWaited(t *testing.T) {
	t.Parallel()
	running, waiting := &sandbox.Failure{Type: agent.ErrTimeout},
		&sandbox.Failure{Type: agent.ErrTimeout, Waiting: true}
	for _, tt := range []struct {
		failure *sandbox.Failure
		below   map[string]attempt.Excused
		want    bool
	}{{running, nil, false}, {waiting, nil, true}, {nil, nil, true},
		{waiting, map[string]attempt.Excused{agent.ErrTimeout: {}}, false},
		{waiting, map[string]attempt.Excused{agent.ErrTimeout: {Retriable: true}}, true},
		{waiting, map[string]attempt.Excused{agent.ErrExecution: {}}, true}} {
		a := attempt.Attempt{Failed: tt.below}
		a.Result.Failure = tt.failure
		if got := a.Waited(); got != tt.want {
			t.Errorf("%+v over %v: %v", tt.failure, tt.below, got)
		}
	}
}
