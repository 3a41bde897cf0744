package disk

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A tool's document is written again if any part of its contract was set again, but not if only its usage figures
// changed.
func TestSameContract(t *testing.T) {
	t.Parallel()
	text := func(s string) json.RawMessage { return json.RawMessage(s) }
	old := &agent.Tool{Role: "finder", Contract: agent.Contract{Purpose: "finds", Deliverable: text(`{"a":1}`),
		Acceptance: text(`["a"]`), FailurePolicy: text(`{"b":1}`), Signature: text(`{"c":1}`)}}
	for name, tt := range map[string]struct {
		change func(*agent.Tool)
		want   bool
	}{
		"used":           {func(x *agent.Tool) { x.UsageCount++ }, true},
		"purpose":        {func(x *agent.Tool) { x.Purpose = "" }, false},
		"deliverable":    {func(x *agent.Tool) { x.Deliverable = slices.Clone(x.Deliverable) }, false},
		"acceptance":     {func(x *agent.Tool) { x.Acceptance = slices.Clone(x.Acceptance) }, false},
		"failure policy": {func(x *agent.Tool) { x.FailurePolicy = nil }, false},
		"signature":      {func(x *agent.Tool) { x.Signature = x.Signature[:3] }, false},
		"a rejected proposal": {func(x *agent.Tool) { x.Proposals = &agent.Proposals{Rejected: []string{"a"}} },
			false},
		"a method with a contract": {func(x *agent.Tool) { x.Methods = map[string]agent.Contract{"m": {}} }, false},
	} {
		changed := *old
		tt.change(&changed)
		if a, b := sameContract(old, &changed), sameContract(&changed, old); a != tt.want || b != tt.want {
			t.Errorf("%s: got %v and %v, want %v", name, a, b, tt.want)
		}
	}
	if !sameContract(&agent.Tool{}, &agent.Tool{}) {
		t.Error("two tools without contracts differ")
	}
}

// The time of a line is an upper bound of when it was appended. A line without a time has none.
func TestLineTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for line, want := range map[string]time.Time{
		`{"timestamp":"2026-11-21T09:00:00Z"}`: at.Add(commitSlack), `{"call_id":"x"}`: {}, `{"timestamp":`: {},
	} {
		if got, ok := callTime([]byte(line)); ok != !want.IsZero() || ok && !got.Equal(want) {
			t.Errorf("call %s: got %v, %v, want %v", line, got, ok, want)
		}
	}
	for line, want := range map[string]time.Time{
		`{"at":1795251600000}`: time.UnixMilli(1795251600000), `{"call_id":"x"}`: {}, `{"at":-1}`: {}, `{"at":17`: {},
	} {
		if got, ok := valueTime([]byte(line)); ok != !want.IsZero() || ok && !got.Equal(want) {
			t.Errorf("value %s: got %v, %v, want %v", line, got, ok, want)
		}
	}
}

// An artifact's weight in the cache covers its programs and what is stored of calls.
func TestArtifactWeight(t *testing.T) {
	t.Parallel()
	none := (&artifact{}).weight()
	x := &artifact{a: &agent.Artifact{Generations: []*agent.Generation{{}}}}
	one := x.weight()
	if none == 0 || one <= none {
		t.Errorf("got %d, and %d with a program", none, one)
	}
	x.a.Generations[0].Code = "twelve bytes"
	if got := x.weight(); got != one+24 { // as source and as JSON
		t.Errorf("with 12 bytes of code: got %d more, want 24", got-one)
	}
	value := json.RawMessage(`"8bytes"`)
	x.a.Generations[0].Fixtures = []agent.Fixture{{Value: value, Effects: value, Kwargs: value, Context: value}}
	if got := x.weight(); got != one+24+4*8 {
		t.Errorf("with a fixture: got %d more, want 32", got-one-24)
	}
}

// The seq of a record is read from where the store writes it. If it cannot be trusted there, the record is decoded.
func TestSeqOf(t *testing.T) {
	t.Parallel()
	far := strings.Repeat(" ", 300)
	for line, want := range map[string]int{
		`{"seq":12,"call_id":"x"}`: 12, `{"call_id":"x","seq":9}`: 9, `{"seq":0}`: 0, `{"call_id":"x"}`: 0,
		`{"seq":`: 0, `{"seq": 7}`: 7, `{"seq":"7"}`: 0, `no record`: 0,
		`{"seq":12345678901234567}`: 12345678901234567, `{"seq":123456789012345678}`: 123456789012345678,
		`{"seq":99999999999999999999}`:              0,
		`{` + far + `"seq":5}`:                      5,
		`{"args":"` + far + `\"seq\":8","seq":5}`:   5,
		`{"kwargs":{"x":[1,` + far + `{"seq":8}]}}`: 0,
	} {
		if got := seqOf([]byte(line)); got != want {
			t.Errorf("%s: got %d, want %d", line, got, want)
		}
	}
}

// Options that a store cannot work with are refused, and the error names them.
func TestOptions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"the default":           {func(*Options) {}, ""},
		"no clock":              {func(o *Options) { o.Now = nil }, "Now"},
		"no flush":              {func(o *Options) { o.Flush = 0 }, "Flush"},
		"files that only close": {func(o *Options) { o.Flush = -1 }, ""},
		"no checkpoint":         {func(o *Options) { o.Checkpoint = 0 }, "Checkpoint"},
		"least sizes":           {func(o *Options) { o.Segment, o.LogSegment, o.LogBytes = 1<<12, 1<<8, 1<<8 }, ""},
		"a small segment":       {func(o *Options) { o.Segment = 1<<12 - 1 }, "Segment"},
		"a small log segment":   {func(o *Options) { o.LogSegment = 1<<8 - 1 }, "LogSegment"},
		"a log below a segment": {func(o *Options) { o.LogBytes = o.LogSegment - 1 }, "LogBytes"},
		"no sessions":           {func(o *Options) { o.Sessions = 0 }, "Sessions"},
		"no artifacts":          {func(o *Options) { o.Artifacts = 0 }, "Artifacts"},
	} {
		o := DefaultOptions()
		tt.change(&o)
		if err := o.validate(); (err == nil) != (tt.want == "") || err != nil &&
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
