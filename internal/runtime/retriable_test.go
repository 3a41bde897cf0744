package runtime

import (
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Which failures may pass by themselves.
func TestRetriable(t *testing.T) {
	t.Parallel()
	authored := func(errorType string, retriable bool) *sandbox.AuthoredError {
		return &sandbox.AuthoredError{Type: errorType, Message: "m", Retriable: retriable}
	}
	below := func(errorType string, retriable bool) map[string]excused {
		return map[string]excused{errorType: {agent.ClassExtrinsic, retriable}}
	}
	tests := []struct {
		name      string
		authored  *sandbox.AuthoredError
		errorType string
		class     agent.Class
		a         attempted
		want      bool
	}{
		{"its own error", authored("low_utility", false), "low_utility", agent.ClassAuthored, attempted{}, false},
		{"its own error, which it calls retriable", authored("closed", true), "closed", agent.ClassAuthored,
			attempted{}, true},
		{"its own error of a type of ours", authored(agent.ErrProvider, false), agent.ErrProvider, agent.ClassAuthored,
			attempted{}, false},
		{"an outage that it reports", authored("fetch_failed", false), "fetch_failed", agent.ClassExtrinsic,
			attempted{}, true},
		{"a panic over an outage", nil, agent.ErrExecution, agent.ClassExtrinsic, attempted{}, true},
		{"a value that breaks the contract over an outage", nil, agent.ErrContractViolation, agent.ClassExtrinsic,
			attempted{}, true},
		{"a panic", nil, agent.ErrExecution, agent.ClassIntrinsic, attempted{}, false},
		{"drift", nil, agent.ErrExecution, agent.ClassAdaptive, attempted{}, false},
		{"no Go", nil, agent.ErrInvalidCode, agent.ClassIntrinsic, attempted{}, true},
		{"a runner that died", nil, agent.ErrRunnerCrash, agent.ClassIntrinsic, attempted{}, true},
		{"its own run time", nil, agent.ErrTimeout, agent.ClassIntrinsic, attempted{}, false},
		{"time spent waiting", nil, agent.ErrTimeout, agent.ClassExtrinsic, attempted{}, true},
		{"its own memory", nil, agent.ErrResourceExhausted, agent.ClassIntrinsic, attempted{}, false},
		{"too large a response", authored(agent.ErrResourceExhausted, false), agent.ErrResourceExhausted,
			agent.ClassExtrinsic, attempted{}, false},
		{"a share without room", authored("other", false), "other", agent.ClassExtrinsic, attempted{noRoom: true},
			false},
		{"an approval that is missing", nil, agent.ErrDenied, agent.ClassExtrinsic, attempted{}, false},
		{"the model was away", authored(agent.ErrProvider, false), agent.ErrProvider, agent.ClassExtrinsic,
			attempted{modelFailed: true, failed: below(agent.ErrProvider, true)}, true},
		{"the model refused the key", authored(agent.ErrProvider, false), agent.ErrProvider, agent.ClassExtrinsic,
			attempted{modelFailed: true, modelFinal: true, failed: below(agent.ErrProvider, false)}, false},
		{"the model refused the key, in other words", authored("no_answer", false), "no_answer", agent.ClassExtrinsic,
			attempted{modelFailed: true, modelFinal: true}, false},
		{"a nested call that may pass", authored("upstream", false), "upstream", agent.ClassExtrinsic,
			attempted{failed: below("upstream", true)}, true},
		{"a nested call that does not", authored(agent.ErrDenied, false), agent.ErrDenied, agent.ClassExtrinsic,
			attempted{failed: below(agent.ErrDenied, false)}, false},
	}
	for _, tt := range tests {
		j := judged{attempted: tt.a, outcome: agent.Failed(tt.errorType, "m"), class: tt.class}
		j.result.Authored = tt.authored
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
		a := attempted{granted: tt.granted}
		a.result.Failure, a.result.Timing.Run, a.result.Effects.Slept = tt.failure, tt.ran, tt.slept
		if got := a.overran(); got != tt.want {
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
		below   map[string]excused
		want    bool
	}{{running, nil, false}, {waiting, nil, true}, {nil, nil, true},
		{waiting, map[string]excused{agent.ErrTimeout: {}}, false},
		{waiting, map[string]excused{agent.ErrTimeout: {retriable: true}}, true},
		{waiting, map[string]excused{agent.ErrExecution: {}}, true}} {
		a := attempted{failed: tt.below}
		a.result.Failure = tt.failure
		if got := a.waited(); got != tt.want {
			t.Errorf("%+v over %v: %v", tt.failure, tt.below, got)
		}
	}
}
