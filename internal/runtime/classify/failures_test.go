package classify

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// More of the labelled failures, as evidence: what TestClassify does not hold.
func TestClassifyMore(t *testing.T) {
	t.Parallel()
	const feed = "https://feeds.example/rss"
	one := func(status int, kind, shape string) []sandbox.Fetch {
		return []sandbox.Fetch{{URL: feed, Status: status, ErrorKind: kind, Shape: shape}}
	}
	known := map[string]string{feed: "rss"}
	tests := []struct {
		name string
		e    Evidence
		want agent.Class
	}{
		{"remote 500", Evidence{Authored: true, ErrorType: "fetch_failed", Fetches: one(500, "", "")},
			agent.ClassExtrinsic},
		{"remote 502", Evidence{Authored: true, ErrorType: "fetch_failed", Fetches: one(502, "", "")},
			agent.ClassExtrinsic},
		{"remote 504", Evidence{ErrorType: agent.ErrContractViolation, Fetches: one(504, "", "")},
			agent.ClassExtrinsic},
		{"429, then a value that breaks the contract", Evidence{ErrorType: agent.ErrContractViolation,
			Fetches: one(429, "", "")}, agent.ClassExtrinsic},
		{"the fetch itself took too long", Evidence{Authored: true, ErrorType: agent.ErrTool,
			Fetches: one(0, "timeout", "")}, agent.ClassExtrinsic},
		{"the connection broke", Evidence{Authored: true, ErrorType: agent.ErrTool, Fetches: one(0, "network", "")},
			agent.ClassExtrinsic},
		{"no such host, reported as parse_failed", Evidence{Authored: true, ErrorType: agent.ErrParseFailed,
			Fetches: one(0, "dns", "")}, agent.ClassExtrinsic},
		{"too large an answer", Evidence{ErrorType: agent.ErrExecution, Fetches: one(0, "too_large", "")},
			agent.ClassExtrinsic},
		{"too large an answer, passed on", Evidence{Authored: true, ErrorType: agent.ErrResourceExhausted,
			Fetches: one(0, "too_large", "")}, agent.ClassExtrinsic},
		{"remote 400", Evidence{Authored: true, ErrorType: "bad_request", Fetches: one(400, "", "")},
			agent.ClassAuthored},
		{"remote 401", Evidence{Authored: true, ErrorType: "unauthorized", Fetches: one(401, "", "")},
			agent.ClassAuthored},
		{"remote 403, index out of range over it", Evidence{ErrorType: agent.ErrExecution, Fetches: one(403, "", "")},
			agent.ClassIntrinsic},
		{"a good fetch, then 503", Evidence{Authored: true, ErrorType: "fetch_failed",
			Fetches: append(one(200, "", "rss"), one(503, "", "")...), Shapes: known}, agent.ClassExtrinsic},
		{"drift and an outage: the outage counts", Evidence{ErrorType: agent.ErrExecution,
			Fetches: append(one(200, "", "html"), one(503, "", "")...), Shapes: known}, agent.ClassExtrinsic},
		{"an error page of status 404 has another shape", Evidence{ErrorType: agent.ErrExecution,
			Fetches: one(404, "", "html"), Shapes: known}, agent.ClassIntrinsic},
		{"drift, no JSON form", Evidence{ErrorType: agent.ErrNonSerializable, Fetches: one(200, "", "html"),
			Shapes: known}, agent.ClassAdaptive},
		{"drift, memory", Evidence{ErrorType: agent.ErrResourceExhausted, Fetches: one(200, "", "html"), Shapes: known},
			agent.ClassAdaptive},
		{"drift of a source never seen", Evidence{ErrorType: agent.ErrExecution, Fetches: one(200, "", "html"),
			Shapes: map[string]string{"https://other.example": "rss"}}, agent.ClassIntrinsic},
		{"a delegated value has its old shape", Evidence{ErrorType: agent.ErrExecution,
			Nested: map[string]string{"h.l": "array"}, Shapes: map[string]string{"h.l": "array"}},
			agent.ClassIntrinsic},
		{"not found, by its own name", Evidence{Authored: true, ErrorType: "not_found"}, agent.ClassAuthored},
		{"says of itself that it timed out", Evidence{Authored: true, ErrorType: agent.ErrTimeout},
			agent.ClassAuthored},
		{"says of itself that it was canceled", Evidence{Authored: true, ErrorType: agent.ErrCanceled},
			agent.ClassAuthored},
		{"unsupported capability", Evidence{Authored: true, ErrorType: agent.ErrUnsupportedCapability},
			agent.ClassAuthored},
		{"processor time used up", Evidence{ErrorType: agent.ErrTimeout}, agent.ClassIntrinsic},
		{"client gone during drift", Evidence{Interrupted: true, ErrorType: agent.ErrCanceled,
			Fetches: one(200, "", "html"), Shapes: known}, agent.ClassNone},
	}
	for _, tt := range tests {
		if got := Class(tt.e); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
