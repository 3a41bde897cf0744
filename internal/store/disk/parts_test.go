package disk

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A tool is written again when its contract was set anew in any part, and not when only its use was counted.
func TestSameContract(t *testing.T) {
	t.Parallel()
	text := func(s string) json.RawMessage { return json.RawMessage(s) }
	old := &agent.Tool{Role: "finder", Contract: agent.Contract{Purpose: "finds", Deliverable: text(`{"a":1}`), Acceptance: text(`["a"]`), FailurePolicy: text(`{"b":1}`), Signature: text(`{"c":1}`)}}
	for name, tt := range map[string]struct {
		change func(*agent.Tool)
		want   bool
	}{
		"used":                     {func(x *agent.Tool) { x.UsageCount++ }, true},
		"purpose":                  {func(x *agent.Tool) { x.Purpose = "" }, false},
		"deliverable":              {func(x *agent.Tool) { x.Deliverable = slices.Clone(x.Deliverable) }, false},
		"acceptance":               {func(x *agent.Tool) { x.Acceptance = slices.Clone(x.Acceptance) }, false},
		"failure policy":           {func(x *agent.Tool) { x.FailurePolicy = nil }, false},
		"signature":                {func(x *agent.Tool) { x.Signature = x.Signature[:3] }, false},
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

// The time of a line is when it was there at the latest; a line that says none has none.
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

// An artifact counts in the cache with all that is stored of calls and programs.
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
