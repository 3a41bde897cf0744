package classify

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Classes come from evidence.
func TestClassify(t *testing.T) {
	t.Parallel()
	const feed = "https://feeds.example/rss"
	good := []sandbox.Fetch{{URL: feed + "?page=1", Status: 200, Shape: "rss"}}
	changed := []sandbox.Fetch{{URL: feed, Status: 200, Shape: "html"}}
	failed := func(status int, kind string) []sandbox.Fetch {
		return []sandbox.Fetch{{URL: feed, Status: status, ErrorKind: kind}}
	}
	known := map[string]string{feed: "rss", "helper.list": "array"}
	tests := []struct {
		name string
		e    Evidence
		want agent.Class
	}{
		{"does not parse", Evidence{ErrorType: agent.ErrInvalidCode}, agent.ClassIntrinsic},
		{"breaks the import policy", Evidence{ErrorType: agent.ErrDependencyPolicy}, agent.ClassIntrinsic},
		{"wrong signature of Run", Evidence{ErrorType: agent.ErrToolRegistry}, agent.ClassIntrinsic},
		{"panics", Evidence{ErrorType: agent.ErrExecution}, agent.ClassIntrinsic},
		{"panics in a goroutine of a callback", Evidence{ErrorType: agent.ErrRunnerCrash}, agent.ClassIntrinsic},
		{"dies of its stack", Evidence{ErrorType: agent.ErrResourceExhausted}, agent.ClassIntrinsic},
		{"has no JSON form", Evidence{ErrorType: agent.ErrNonSerializable}, agent.ClassIntrinsic},
		{"breaks its contract", Evidence{ErrorType: agent.ErrContractViolation}, agent.ClassIntrinsic},
		{"loops for ever", Evidence{ErrorType: agent.ErrTimeout}, agent.ClassIntrinsic},
		{"waits for a fetch past its time", Evidence{ErrorType: agent.ErrTimeout, WaitingEnded: true},
			agent.ClassExtrinsic},
		{"no such host", Evidence{ErrorType: agent.ErrExecution, Fetches: failed(0, "dns")}, agent.ClassExtrinsic},
		{"connection refused, reported honestly", Evidence{Authored: true, ErrorType: agent.ErrTool,
			Fetches: failed(0, "refused")}, agent.ClassExtrinsic},
		{"rate limited", Evidence{Authored: true, ErrorType: "rate_limited", Fetches: failed(429, "")},
			agent.ClassExtrinsic},
		{"remote 503", Evidence{Authored: true, ErrorType: "extrinsic", Fetches: failed(503, "")},
			agent.ClassExtrinsic},
		{"remote 503, then a panic over it", Evidence{ErrorType: agent.ErrExecution, Fetches: failed(503, "")},
			agent.ClassExtrinsic},
		{"remote 404 is an answer", Evidence{Authored: true, ErrorType: "not_found", Fetches: failed(404, "")},
			agent.ClassAuthored},
		{"remote 404, then a panic over it", Evidence{ErrorType: agent.ErrExecution, Fetches: failed(404, "")},
			agent.ClassIntrinsic},
		{"a fetch that policy denied", Evidence{ErrorType: agent.ErrExecution, Fetches: failed(0, "denied")},
			agent.ClassIntrinsic},
		{"the format drifted, parse_failed", Evidence{Authored: true, ErrorType: agent.ErrParseFailed, Fetches: changed,
			Shapes: known}, agent.ClassAdaptive},
		{"the format drifted, panic", Evidence{ErrorType: agent.ErrExecution, Fetches: changed, Shapes: known},
			agent.ClassAdaptive},
		{"the format drifted, contract broken", Evidence{ErrorType: agent.ErrContractViolation, Fetches: changed,
			Shapes: known}, agent.ClassAdaptive},
		{"the format drifted, another honest error", Evidence{Authored: true, ErrorType: agent.ErrLowUtility,
			Fetches: changed, Shapes: known}, agent.ClassAuthored},
		{"parse_failed on the shape of always", Evidence{Authored: true, ErrorType: agent.ErrParseFailed, Fetches: good,
			Shapes: known}, agent.ClassAdaptive},
		{"panic on the shape of always", Evidence{ErrorType: agent.ErrExecution, Fetches: good, Shapes: known},
			agent.ClassIntrinsic},
		{"parse_failed, no shape is known yet", Evidence{Authored: true, ErrorType: agent.ErrParseFailed,
			Fetches: changed}, agent.ClassAdaptive},
		{"a delegated value drifted", Evidence{ErrorType: agent.ErrExecution,
			Nested: map[string]string{"helper.list": "object{}"}, Shapes: known}, agent.ClassAdaptive},
		{"says of itself that it is extrinsic", Evidence{Authored: true, ErrorType: "extrinsic"}, agent.ClassAuthored},
		{"a plain returned error", Evidence{Authored: true, ErrorType: agent.ErrTool}, agent.ClassAuthored},
		{"invalid input", Evidence{Authored: true, ErrorType: agent.ErrInvalidInput}, agent.ClassAuthored},
		{"low utility", Evidence{Authored: true, ErrorType: agent.ErrLowUtility}, agent.ClassAuthored},
		{"wrong boundary", Evidence{Authored: true, ErrorType: agent.ErrWrongToolBoundary}, agent.ClassAuthored},
		{"client gone", Evidence{Interrupted: true, ErrorType: agent.ErrCanceled}, agent.ClassNone},
		{"shutdown during a fetch", Evidence{Interrupted: true, ErrorType: agent.ErrCanceled,
			Fetches: failed(0, "network")}, agent.ClassNone},
		{"spawn failed", Evidence{Interrupted: true, ErrorType: agent.ErrResourceExhausted}, agent.ClassNone},
	}
	for _, tt := range tests {
		if got := Class(tt.e); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
