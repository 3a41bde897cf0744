package forge

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/classify"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
)

// maxSources bounds how many fetched sources a failure keeps.
const maxSources = 4

// FailureOf returns what an artifact keeps of a failed run, as evidence for the next program. Runs with masked inputs
// keep no samples of responses.
func FailureOf(c *call.Call, g *agent.Generation, j judge.Judged) *agent.Failure {
	f := &agent.Failure{At: c.Started, CallID: c.ID, SessionID: c.Session.ID, Generation: g.ID, Class: j.Class,
		ErrorType: j.Outcome.ErrorType,
		Message:   agent.Clip(c.Mask(j.Outcome.ErrorMessage), 400), Unknown: j.Fit.Unknown}
	for _, got := range j.Result.Effects.Fetches[:min(len(j.Result.Effects.Fetches), maxSources)] {
		s := agent.Source{URL: got.URL, Status: got.Status, ContentType: got.ContentType, Bytes: got.Bytes,
			Shape: cmp.Or(got.Outline, got.Shape)}
		key := classify.Source(got)
		outline := g.Outlines[key]
		if was, known := g.Shapes[key]; known && (outline != "" && outline != got.Outline ||
			!got.Keeps(was, outline, c.Env.Words.Of(g))) {
			s.WasShape = shapeOfAnother
			if c.Reader() == cmp.Or(g.ShapesOwner, agent.LocalOwner) {
				s.WasShape = cmp.Or(outline, was)
			}
		}
		if !c.Shown().Masked || c.Shown().Known != nil {
			s.Sample = got.Sample
		}
		f.Sources = append(f.Sources, s)
	}
	return f
}

// shapeOfAnother stands for the shape that a source had in another owner's call.
const shapeOfAnother = "another, in a call of somebody else"

// Bounds of the parts of the evidence in a request, in bytes; 12 KiB in total.
const (
	maxReasons   = 1 << 10
	maxVerdicts  = 3 << 10
	maxFailing   = 4 << 10
	maxEarlier   = 2 << 10
	maxDiscarded = 1 << 10
	maxRemarks   = 1<<10 - 16
)

// An evidenceText collects lines with secrets masked. Each part has its own bound, so no part crowds out another.
type evidenceText struct {
	c     *writer
	parts []prompt.Part
}

// part begins a part of at most most bytes. Lines are added to the last part.
func (e *evidenceText) part(most int) { e.parts = append(e.parts, prompt.Part{Most: most}) }

func (e *evidenceText) add(q prompt.Quote) {
	p := &e.parts[len(e.parts)-1]
	p.Lines = append(p.Lines, q)
}

// say adds a line that everybody in the namespace may read.
func (e *evidenceText) say(format string, args ...any) {
	e.add(e.c.ForAll(fmt.Sprintf(format, args...)))
}

// quote adds a line that only the owner's requests show.
func (e *evidenceText) quote(owner, format string, args ...any) {
	e.add(e.c.Quote(owner, fmt.Sprintf(format, args...), ""))
}

// evidence collects for the model what is known apart from the failed code: what programs of the method may reach, why
// people want another program, what they said about answers, what the failing run fetched, the last failures, why the
// last candidate was discarded, which answers were weak, and what callers asked again. The evidence is data and
// contains no instructions.
func (c *writer) evidence(ctx context.Context, q Request) []prompt.Part {
	e := &evidenceText{c: c}
	a := c.Artifact
	e.part(maxReasons)
	c.describeReach(e)
	describeReasons(ctx, &c.Selection, e)
	e.part(maxVerdicts)
	if a != nil {
		for i := range a.Verdicts {
			if v := &a.Verdicts[i]; v.Wrong() {
				e.verdict(c.OwnerOfSession(ctx, v.SessionID), v)
			}
		}
	}
	e.part(maxFailing)
	failing := q.Basis.Attempt
	if failing.ID != "" && failing.Program != nil {
		e.failure(cmp.Or(failing.Of, c.Reader()), "the failing run", FailureOf(c.Call, failing.Program, failing),
			maxSample)
	}
	if c.SwitchedOff() { // the rest is about stored programs, which are switched off
		e.part(maxRemarks)
		describeDelegates(ctx, &c.Selection, e, q)
		return e.parts
	}
	e.part(maxEarlier)
	if a != nil {
		for i := range a.Failures {
			if f := &a.Failures[i]; f.CallID != c.ID {
				e.failure(c.OwnerOfSession(ctx, f.SessionID), "an earlier failure", f, maxEarlierSample)
			}
		}
	}
	e.part(maxDiscarded)
	c.describeDiscarded(e)
	e.part(maxRemarks)
	if a != nil {
		describeRemarks(ctx, &c.Selection, e)
	}
	describeDelegates(ctx, &c.Selection, e, q)
	return e.parts
}

// Bounds of samples of responses, in characters.
const (
	maxSample        = 2 << 10
	maxEarlierSample = 300
)

// describeDiscarded adds why the last candidate was discarded.
func (c *writer) describeDiscarded(e *evidenceText) {
	const text = "the last program that was written and discarded"
	if a := c.Artifact; a != nil && len(a.Rejections) > 0 {
		r := &a.Rejections[0]
		owner, why := cmp.Or(r.Owner, agent.LocalOwner), r.Reason
		if r.Stage != attempt.StageProof { // a proof's reasons are the daemon's own words
			errorType, _, _ := strings.Cut(r.Reason, ":")
			why = c.NamedType(errorType)
		}
		e.add(c.Quote(owner, text+" ("+r.Stage+"): "+r.Reason, text+" ("+r.Stage+"): "+why))
		if r.Hint != "" {
			e.add(c.Quote(owner, "  "+r.Hint, heldBack(&c.Selection, a.Example(r.Example))))
		}
	} else if last, known := c.backoffs.last(BackoffKey{Method: turns.Method{Role: c.Role, Method: c.Method},
		Checked: c.Terms.Checked}); known && last.Message != "" {
		e.add(c.Quote(last.Owner, text+": "+last.ErrorType+": "+last.Message, text+": "+c.NamedType(last.ErrorType)))
	}
}

// heldBack describes the expected answer of an example whose hint the prompt may not show. It returns "" if x is nil or
// not active.
func heldBack(c *call.Selection, x *agent.Example) string {
	if x == nil || x.State != agent.ExampleActive {
		return ""
	}
	return fmt.Sprintf("  for args %s kwargs %s the answer must be %s", c.Clip(string(jsonenc.Array(x.Args))),
		c.Clip(string(x.Kwargs)), c.Clip(x.Expect.String()))
}

// failure adds a failed run: the error, and what the run fetched. Readers other than the owner see only types and
// counts.
func (e *evidenceText) failure(owner, what string, f *agent.Failure, sample int) {
	in := fmt.Sprintf("%s ended in %s", what, e.c.NamedType(f.ErrorType))
	if len(f.Sources) > 0 {
		in += fmt.Sprintf(", after %d responses from outside", len(f.Sources))
	}
	if len(f.Unknown) > 0 {
		in += fmt.Sprintf("; it had keywords that the program does not read, %d of them", len(f.Unknown))
	}
	e.add(e.c.Quote(owner, fmt.Sprintf("%s ended in %s: %s", what, f.ErrorType, f.Message), in))
	if len(f.Unknown) > 0 {
		e.quote(owner, "  it had keywords that the program does not read: %s", strings.Join(f.Unknown, ", "))
	}
	for _, s := range f.Sources {
		e.quote(owner, "  it fetched %s: status %d, %s, %d bytes", s.URL, s.Status, s.ContentType, s.Bytes)
		if s.WasShape != "" {
			e.add(e.c.Quote(owner, fmt.Sprintf("  the shape of the response is now %s; at the last good run it was %s",
				s.Shape, s.WasShape), "  the shape of a response had changed"))
		}
		if s.Sample != "" {
			e.quote(owner, "  the response begins: %s", agent.Clip(s.Sample, sample))
		}
	}
}

// verdict describes an answer that a person judged wrong. If the expected answer became an example, it is public.
func (e *evidenceText) verdict(owner string, v *agent.Verdict) {
	c := e.c
	x := c.Artifact.Example(v.ExampleID)
	shared := x != nil && x.State == agent.ExampleActive
	input := fmt.Sprintf("args %s kwargs %s", c.Clip(string(jsonenc.Array(v.Args))), c.Clip(string(v.Kwargs)))
	say := func(text string) {
		if shared {
			e.say("%s", text)
		} else {
			e.quote(owner, "%s", text)
		}
	}
	form := input
	if !shared {
		form = "an input of the form " + c.Outlined(v.Args, v.Kwargs)
	}
	e.add(c.Quote(owner, fmt.Sprintf("a person called an answer wrong: %s were answered with %s", input,
		c.Clip(proof.AnswerText(v.Got, v.GotErrorType))),
		fmt.Sprintf("a person called an answer wrong: %s, answered with %s", form,
			c.OutlinedAnswer(v.Got, v.GotErrorType))))
	switch {
	case v.Expected != nil:
		say("  the right answer is " + c.Clip(string(v.Expected)))
	case v.ExpectedErrorType != "":
		say("  the right answer is an error of the type " + v.ExpectedErrorType)
	}
	if v.Note != "" {
		say("  the person's note: " + agent.Clip(v.Note, 800))
	}
}

// describeReach adds what programs of the method may reach.
func (c *writer) describeReach(e *evidenceText) {
	if g := proof.GuardFor(&c.Selection); g != nil {
		e.say("programs of this method may reach only this, until a person allows more: %s",
			reachWords(&g.Manifest.Effects))
	} else if b := c.before; b != nil {
		all := b.Manifest.With(&b.Program)
		e.say("a program that reaches more than this waits for a person's approval, and the one of now goes on until then: %s", reachWords(&all))
	}
	if c.Artifact == nil {
		return
	}
	for _, g := range c.Artifact.Generations {
		if g.ID != c.Artifact.CurrentID && c.Artifact.AwaitsReach(g) {
			e.say("nobody has approved a program of this method that reaches more: %s", reachWords(g.Beyond))
		}
	}
}

// reachWords renders effects for a prompt.
func reachWords(e *agent.Effects) string {
	return "hosts " + attempt.ReachOf(e.Hosts) + "; HTTP methods " + attempt.ReachOf(e.Methods) + "; tools " +
		attempt.ReachOf(e.Tools)
}
