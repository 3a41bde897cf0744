package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// maxSources bounds what a failure keeps of what was fetched.
const maxSources = 4

// failureOf is what an artifact keeps of a failed run, as evidence for the next program. Runs with masked inputs leave
// no samples.
func (c *opened) failureOf(g *agent.Generation, j judged) *agent.Failure {
	f := &agent.Failure{At: c.started, CallID: c.id, SessionID: c.session.ID, Generation: g.ID, Class: j.class, ErrorType: j.outcome.ErrorType,
		Message: Clip(c.mask(j.outcome.ErrorMessage), 400), Unknown: j.unknown}
	for _, got := range j.result.Effects.Fetches[:min(len(j.result.Effects.Fetches), maxSources)] {
		s := agent.Source{URL: got.URL, Status: got.Status, ContentType: got.ContentType, Bytes: got.Bytes, Shape: cmp.Or(got.Outline, got.Shape)}
		key := shapeKey(got)
		if was, known := g.Shapes[key]; known && (was != got.Shape || g.Outlines[key] != "" && g.Outlines[key] != got.Outline) {
			s.WasShape = cmp.Or(g.Outlines[key], was)
		}
		if !c.shown().masked || c.shown().known != nil {
			s.Sample = got.Sample
		}
		f.Sources = append(f.Sources, s)
	}
	return f
}

// Bounds of the parts of the evidence that a request shows, in bytes: 12 KiB in all.
const (
	maxReasons   = 1 << 10
	maxVerdicts  = 3 << 10
	maxFailing   = 4 << 10
	maxEarlier   = 2 << 10
	maxDiscarded = 1 << 10
	maxRemarks   = 1<<10 - 16
)

// An evidenceText collects lines, secrets masked, in parts that are bounded each: none crowds out another.
type evidenceText struct {
	c    *opened
	all  strings.Builder
	left int // of the part, in bytes
}

func (e *evidenceText) part(most int) { e.left = most }

func (e *evidenceText) add(format string, args ...any) {
	line := e.c.mask(strings.ToValidUTF8(fmt.Sprintf(format, args...), "")) + "\n"
	if len(line) > e.left {
		cut := max(0, e.left-len("…\n"))
		for cut > 0 && !utf8.RuneStart(line[cut]) {
			cut--
		}
		if e.left = 0; cut < 40 {
			return
		}
		line = line[:cut] + "…\n"
	} else {
		e.left -= len(line)
	}
	e.all.WriteString(line)
}

// evidence collects for the model what is known beside the failed code: why people want another program, what they said of
// answers, what was fetched in the failing run, the last failures, why the last candidate was discarded, which answers were
// weak, and what callers asked again. It is data, and gives no orders.
func (c *selected) evidence(ctx context.Context, q forgeRequest) string {
	e := &evidenceText{c: c.opened}
	a := c.artifact
	e.part(maxReasons)
	if g := c.guard(); g != nil {
		e.add("programs of this method may reach only this, until a person allows more: hosts %s; HTTP methods %s; tools %s", reachOf(g.manifest.Hosts), reachOf(g.manifest.Methods), reachOf(g.manifest.Tools))
	}
	c.describeReasons(ctx, e)
	e.part(maxVerdicts)
	if a != nil {
		for i := range a.Verdicts {
			if v := &a.Verdicts[i]; v.Wrong() {
				e.verdict(v)
			}
		}
	}
	e.part(maxFailing)
	failing := q.basis.attempt
	if failing.id != "" && failing.program != nil {
		e.failure("the failing run", c.failureOf(failing.program, failing), maxSample)
	}
	e.part(maxEarlier)
	if a != nil {
		for i := range a.Failures {
			if f := &a.Failures[i]; f.CallID != c.id {
				e.failure("an earlier failure", f, maxEarlierSample)
			}
		}
	}
	e.part(maxDiscarded)
	c.describeDiscarded(e)
	e.part(maxRemarks)
	if a != nil {
		c.describeRemarks(ctx, e)
	}
	return e.all.String()
}

// Bounds of samples of responses, in characters.
const (
	maxSample        = 2 << 10
	maxEarlierSample = 300
)

// describeDiscarded says why the last program that was written was discarded.
func (c *selected) describeDiscarded(e *evidenceText) {
	if a := c.artifact; a != nil && len(a.Rejections) > 0 {
		r := a.Rejections[0]
		e.add("the last program that was written and discarded (%s): %s", r.Stage, r.Reason)
		if r.Hint != "" {
			e.add("  %s", r.Hint)
		}
	} else if last, known := c.r.backoffs.last(backoffKey{methodKey{c.role, c.method}, c.terms.checked}); known && last.message != "" {
		e.add("the last program that was written and discarded: %s: %s", last.errorType, last.message)
	}
}

func (e *evidenceText) failure(what string, f *agent.Failure, sample int) {
	e.add("%s ended in %s: %s", what, f.ErrorType, f.Message)
	if len(f.Unknown) > 0 {
		e.add("  it had keywords that the program does not read: %s", strings.Join(f.Unknown, ", "))
	}
	for _, s := range f.Sources {
		e.add("  it fetched %s: status %d, %s, %d bytes", s.URL, s.Status, s.ContentType, s.Bytes)
		if s.WasShape != "" {
			e.add("  the shape of the response is now %s; at the last good run it was %s", s.Shape, s.WasShape)
		}
		if s.Sample != "" {
			e.add("  the response begins: %s", Clip(s.Sample, sample))
		}
	}
}

func (e *evidenceText) verdict(v *agent.Verdict) {
	e.add("a person called an answer wrong: args %s kwargs %s were answered with %s", e.c.clip(string(rawArray(v.Args))), e.c.clip(string(v.Kwargs)), e.c.clip(answerText(v.Got, v.GotErrorType)))
	switch {
	case v.Expected != nil:
		e.add("  the right answer is %s", e.c.clip(string(v.Expected)))
	case v.ExpectedErrorType != "":
		e.add("  the right answer is an error of the type %s", v.ExpectedErrorType)
	}
	if v.Note != "" {
		e.add("  the person's note: %s", Clip(v.Note, 800))
	}
}

// answerText is an answer in words: the value, or the type of the error.
func answerText(value json.RawMessage, errorType string) string {
	if errorType != "" {
		return "the error " + errorType
	}
	return string(value)
}
