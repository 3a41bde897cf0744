package runtime

import (
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
)

// maxSources bounds what a failure keeps of what was fetched.
const maxSources = 4

// failureOf is what an artifact keeps of a failed run, as evidence for the next program. Runs with masked inputs leave
// no samples.
func (c *opened) failureOf(g *agent.Generation, j judged) *agent.Failure {
	f := &agent.Failure{At: c.started, CallID: c.id, SessionID: c.session.ID, Generation: g.ID, Class: j.class, ErrorType: j.outcome.ErrorType,
		Message: Clip(j.outcome.ErrorMessage, 400)}
	for _, got := range j.result.Effects.Fetches[:min(len(j.result.Effects.Fetches), maxSources)] {
		s := agent.Source{URL: got.URL, Status: got.Status, ContentType: got.ContentType, Bytes: got.Bytes, Shape: got.Shape}
		if was, known := g.Shapes[shapeKey(got)]; known && was != got.Shape {
			s.WasShape = was
		}
		if !c.masked {
			s.Sample = history.MaskText(got.Sample, c.policy.RedactKeys)
		}
		f.Sources = append(f.Sources, s)
	}
	return f
}

// maxEvidence bounds the evidence that a request shows, in bytes.
const maxEvidence = 12 << 10

// evidence tells the model what is known beside the failed code: what was fetched in the failing run, the last failures,
// why the last candidate was discarded, and what people said. It is data, and gives no orders.
func (c *selected) evidence(q forgeRequest) string {
	var b strings.Builder
	add := func(format string, args ...any) {
		if line := fmt.Sprintf(format, args...); b.Len()+len(line) < maxEvidence {
			b.WriteString(line + "\n")
		}
	}
	if q.basis.attempt.id != "" && q.basis.attempt.program != nil {
		describeFailure(add, "the failing run", c.failureOf(q.basis.attempt.program, q.basis.attempt))
	}
	a := c.artifact
	if a == nil {
		return b.String()
	}
	for _, v := range a.Verdicts {
		if v.State == agent.ExampleActive && v.Verdict == agent.VerdictWrong {
			describeVerdict(add, v)
		}
	}
	for i := range a.Failures {
		if f := &a.Failures[i]; f.CallID != c.id {
			describeFailure(add, "an earlier failure", f)
		}
	}
	if len(a.Rejections) > 0 {
		r := a.Rejections[0]
		add("the last program that was written and discarded (%s): %s", r.Stage, r.Reason)
	} else if last, known := c.r.backoffs.last(backoffKey{methodKey{c.role, c.method}, c.terms.checked}); known {
		add("the last program that was written and discarded: %s: %s", last.errorType, last.message)
	}
	return b.String()
}

func describeFailure(add func(string, ...any), what string, f *agent.Failure) {
	add("%s ended in %s: %s", what, f.ErrorType, f.Message)
	for _, s := range f.Sources {
		add("  it fetched %s: status %d, %s, %d bytes", s.URL, s.Status, s.ContentType, s.Bytes)
		if s.WasShape != "" {
			add("  the shape of the response changed since the last good run: %s, was %s", s.Shape, s.WasShape)
		}
		if s.Sample != "" {
			add("  the response begins: %s", s.Sample)
		}
	}
}

func describeVerdict(add func(string, ...any), v agent.Verdict) {
	got := string(v.Got)
	if v.GotErrorType != "" {
		got = "the error " + v.GotErrorType
	}
	add("a person called an answer wrong: args %s kwargs %s were answered with %s", Clip(string(rawArray(v.Args)), 600), Clip(string(v.Kwargs), 600), Clip(got, 600))
	switch {
	case v.Expected != nil:
		add("  the right answer is %s", Clip(string(v.Expected), 600))
	case v.ExpectedErrorType != "":
		add("  the right answer is an error of the type %s", v.ExpectedErrorType)
	}
	if v.Note != "" {
		add("  the person's note: %s", Clip(v.Note, 1000))
	}
}
