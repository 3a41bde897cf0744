// Package proof checks whether a candidate may serve: it must hold the examples that people fixed, reproduce its
// predecessor's answers, and reach no further than people allow. The runs are dry: nothing is kept or counted. The
// package does not know why a candidate was written, and adopts none.
package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/equal"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// Against holds the conditions of a proof: the contract, the examples and the fixtures of a selection.
type Against struct {
	call.Selection

	Nester    attempt.Nester // makes the calls of the programs that it runs
	Adaptive  bool           // a source has just changed, so recorded fetches prove nothing
	MayChange bool           // a person asked for a change, so fixtures may be answered differently
}

// A Candidate is a program that is proved before it serves. Calls may share it.
type Candidate struct {
	Generation  agent.Generation // without an ID, which the adoption assigns
	Predecessor *agent.Generation
	// the model judged that the predecessor still serves the method's changed purpose, so there is no new program
	Keeps bool
	// Reach of its predecessor, which a person must approve it to exceed; nil if no approval is needed
	Reach *Reach
	// the part of its reach that a person must approve before it serves; may be nil
	Beyond atomic.Pointer[agent.Effects]

	turn    chan struct{} // of capacity 1: the sender owns the fields below until it receives
	proved  bool
	verdict Verdict
}

// New returns a candidate that is not proved yet. predecessor is nil for a method's first program.
func New(g agent.Generation, predecessor *agent.Generation) *Candidate {
	return &Candidate{Generation: g, Predecessor: predecessor, turn: make(chan struct{}, 1)}
}

// A Verdict is the result of a proof.
type Verdict struct {
	// the attempt that broke an example or a fixture, or one of agent.ClassNone if the proof was interrupted; nil if
	// the candidate may serve
	Broken   *judge.Judged
	Examples string // digest of the examples that the candidate was held to
	// IDs of active examples that a program for a changed purpose does not hold; a person decides about them
	Breaks []string
	Reproduced
}

// Reproduced is what a candidate made of its predecessor's fixtures.
type Reproduced struct {
	Checked bool                  // the fixtures were checked
	Seen    []string              // call IDs of the predecessor's fixtures at the time of the proof
	Kept    []agent.Fixture       // reproduced fixtures, which the candidate takes over
	Changed []agent.ChangedAnswer // answers that differ, if a person asked for the change
	renewed []agent.Fixture       // fixtures with their changed values, which later programs must reproduce
}

// fixtureOf makes a fixture of an ok call, by which successors are proved. It returns nil if there are enough fixtures,
// if one with this input exists, or if the program used more input than arguments, context and effects. Masks replace
// secrets in the fixture. masked reports that they do; the caller must then prove that the masked fixture works.
func fixtureOf(c *call.Selection, g *agent.Generation, a judge.Judged) (f *agent.Fixture, masked bool) {
	in := c.Shown()
	if !c.Policy.FixturesEnabled || len(g.Fixtures) >= agent.MaxFixtures || a.Result.Effects.Truncated ||
		c.InputHistory != nil {
		return nil, false
	}
	size := len(in.Kwargs)
	for _, arg := range in.Args {
		size += len(arg)
	}
	// check before masking, which takes longer than all else for a large call
	if size > agent.MaxFixtureBytes || len(a.Outcome.Value)+len(a.Result.Effects.Journal) > 4*agent.MaxFixtureBytes {
		return nil, false
	}
	facts := a.Result.Facts
	if facts == nil || facts.NamesHistory() || facts.UsesContent || !g.Cacheable ||
		hasInput(a.Takes, g.Fixtures, in.Args, in.Kwargs) ||
		c.Artifact.Doubted(g.ID) && c.Artifact.CalledWrong(in.Args, in.Kwargs) {
		return nil, false
	}
	f = &agent.Fixture{CallID: c.ID, SessionID: c.Session.ID, Owner: agent.LoggedOwner(c.Session.Owner), Args: in.Args,
		Kwargs: in.Kwargs}
	var ofValue, ofEffects, ofContext bool
	f.Value, ofValue = c.MaskJSON(a.Outcome.Value)
	f.Effects, ofEffects = c.MaskJSON(a.Result.Effects.Journal)
	if size += len(f.Value) + len(f.Effects); size > agent.MaxFixtureBytes {
		return nil, false
	}
	if len(facts.ContextReads)+len(facts.ContextWrites) > 0 && len(c.Memory) > 0 {
		raw, err := json.Marshal(c.Memory)
		if err != nil || size+len(raw) > agent.MaxFixtureBytes {
			return nil, false
		}
		f.Context, ofContext = c.MaskJSON(raw)
	}
	if c.Life.Err() != nil { // masking was cut short, so too much may be hidden
		return nil, false
	}
	return f, in.Masked || ofValue || ofEffects || ofContext
}

// hasInput reports whether one of the fixtures has that input, by position or by name.
func hasInput(takes *agent.Interface, fixtures []agent.Fixture, args []json.RawMessage, kwargs json.RawMessage) bool {
	for _, f := range fixtures { // cheap comparison before the one that decodes
		if bytes.Equal(f.Kwargs, kwargs) && slices.EqualFunc(f.Args, args,
			func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			return true
		}
	}
	return slices.ContainsFunc(fixtures,
		func(f agent.Fixture) bool { return takes.SameInput(f.Args, f.Kwargs, args, kwargs) })
}

// Prove checks the candidate against the active examples and its predecessor's fixtures. The proof is made once, by the
// first call that is not interrupted; other calls wait for it. An interrupted proof shows nothing, so the next call
// makes it again.
func Prove(ctx context.Context, cand *Candidate, c *Against) Verdict {
	select {
	case cand.turn <- struct{}{}:
		defer func() { <-cand.turn }()
	case <-ctx.Done():
		a := &judge.Judged{Attempt: attempt.Attempt{ID: c.ID + ".f"}, Stage: attempt.StageProof}
		a.Outcome, a.Class = interrupt.Outcome(ctx)
		return Verdict{Broken: a}
	}
	if !cand.proved {
		v := prove(ctx, cand, c.refreshed(ctx))
		if v.Broken != nil && v.Broken.Class != agent.ClassIntrinsic {
			return v // interrupted
		}
		if v.Broken != nil && v.Broken.Of == "" {
			v.Broken.Of = c.Reader() // other owners' calls may wait for the same proof
		}
		cand.proved, cand.verdict = true, v
	}
	v := cand.verdict
	v.Broken = proofFor(c.Call, v.Broken)
	return v
}

// prove makes the proof.
func prove(ctx context.Context, cand *Candidate, c *Against) (v Verdict) {
	v.Examples, v.Broken = ExamplesDigest(c.Artifact), Examples(ctx, cand, c)
	if v.Broken != nil && v.Broken.Example != "" && c.Decision.Reason == selection.ReasonPurposeChanged && !cand.Keeps {
		v.Breaks, v.Broken = c.onlyExamples(ctx, cand, v.Broken)
	}
	if v.Broken == nil && !c.SwitchedOff() {
		v.Reproduced, v.Broken = c.proveFixtures(ctx, cand)
	}
	return v
}

// Reproduces checks the candidate against its predecessor's fixtures alone. It returns the attempt that broke one, or
// nil.
func Reproduces(ctx context.Context, cand *Candidate, c *Against) (Reproduced, *judge.Judged) {
	return c.refreshed(ctx).proveFixtures(ctx, cand)
}

// proofFor returns a failed proof, which another call may have found, in the form that this call may keep and show. It
// returns nil for nil.
func proofFor(c *call.Call, found *judge.Judged) *judge.Judged {
	if found == nil {
		return nil
	}
	own := *found
	own.ID = c.ID + own.ID[strings.IndexByte(own.ID, '.'):]
	own.Outcome.Metadata = nil
	switch {
	case own.Fixture != "" && own.Of == c.Reader():
		own.Outcome.Metadata = map[string]any{"fixture": own.Fixture}
	case own.Example != "":
		own.Outcome.Metadata = map[string]any{"example": own.Example}
	}
	return &own
}

// refreshed returns the selection with the artifact's current state: while the model wrote, calls may have added
// fixtures and people examples.
func (c *Against) refreshed(ctx context.Context) *Against {
	now := *c
	if a, err := c.Env.Store.Artifact(ctx, c.Role, c.Method); err == nil {
		now.Artifact = a
	}
	return &now
}

// Unseen reports whether the predecessor has gained a fixture since the proof.
func (p *Reproduced) Unseen(predecessor *agent.Generation, now *agent.Artifact) bool {
	if predecessor == nil || now.Find(predecessor.ID) == nil || !p.Checked {
		return false
	}
	return slices.ContainsFunc(now.Find(predecessor.ID).Fixtures,
		func(f agent.Fixture) bool { return !slices.Contains(p.Seen, f.CallID) })
}

// proveFixtures checks the candidate against its predecessor's fixtures and returns the attempt that broke one, or nil.
// With MayChange, different answers are recorded instead, but a crash still breaks the proof.
func (c *Against) proveFixtures(ctx context.Context, cand *Candidate) (p Reproduced, broken *judge.Judged) {
	if cand.Predecessor == nil || !c.Policy.FixturesEnabled || c.Artifact != nil && c.Artifact.Quarantined ||
		c.Rewrites() {
		return p, nil
	}
	if c.Terms.Checked == agent.FingerprintNone && !cand.Predecessor.Keeps(c.Terms.Checked) {
		return p, nil // the predecessor answered callers with a different contract
	}
	p.Checked = true
	predecessor := cand.Predecessor
	if now := c.Artifact; now != nil && now.Find(predecessor.ID) != nil {
		predecessor = now.Find(predecessor.ID)
	}
	fixtures, interrupted := c.inherited(ctx, predecessor)
	if interrupted != nil {
		return p, interrupted
	}
	for i, f := range fixtures {
		p.Seen = append(p.Seen, f.CallID)
		if !binds(&c.Selection, f, c.Adaptive) {
			continue
		}
		broken, reproduced := c.Rerun(ctx, &cand.Generation, f, i)
		switch {
		// A person wants other answers, so a difference is recorded. A crash is still a fault.
		case broken != nil && broken.Class == agent.ClassIntrinsic && c.MayChange && broken.Result.Failure == nil:
			p.Changed = append(p.Changed, ChangedAnswer(f, broken))
			if broken.Result.Value != nil {
				f.Value = broken.Result.Value
				p.renewed = append(p.renewed, f)
			}
		case broken != nil:
			return p, broken
		case reproduced:
			p.Kept = append(p.Kept, f)
		}
	}
	return p, nil
}

// inherited returns the predecessor's fixtures. It adds its ancestors' fixtures that the predecessor reproduces, which
// they gained while it waited for approval. It returns an attempt if a run was interrupted.
func (c *Against) inherited(ctx context.Context, predecessor *agent.Generation) ([]agent.Fixture, *judge.Judged) {
	all := slices.Clip(predecessor.Fixtures)
	if c.Artifact == nil {
		return all, nil
	}
	for g, left := predecessor, len(c.Artifact.Generations); g.ParentID != nil && left > 0; left-- {
		if g = c.Artifact.Find(*g.ParentID); g == nil || g.MadeFor != nil && predecessor.MadeFor != nil &&
			g.MadeFor.Digest != predecessor.MadeFor.Digest {
			break // made for another purpose
		}
		for i, f := range g.Fixtures {
			if hasInput(predecessor.Interface, all, f.Args, f.Kwargs) {
				continue
			}
			broken, reproduced := c.Rerun(ctx, predecessor, f, i)
			if broken != nil && broken.Class != agent.ClassIntrinsic {
				return nil, broken
			}
			if reproduced {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// Fixtures returns the fixtures that the candidate hands on to its successors.
func (p *Reproduced) Fixtures() []agent.Fixture { return append(slices.Clip(p.Kept), p.renewed...) }

// binds reports whether a successor must reproduce the fixture. It need not if the current contract rejects the
// value, if the fixture rests on a response that has changed shape, or if a person expects another answer.
func binds(c *call.Selection, f agent.Fixture, adaptive bool) bool {
	if adaptive && len(f.Effects) > 0 || contradicted(c, f) {
		return false
	}
	return c.Terms.Schema == nil || c.Terms.Schema.Check(f.Value) == nil
}

// contradicted reports whether an example demands an answer other than the fixture's or, if no example has that input,
// whether a person judged the fixture's answer wrong.
func contradicted(c *call.Selection, f agent.Fixture) bool {
	if c.Artifact == nil {
		return false
	}
	was := agent.Outcome{Status: agent.StatusOK, Value: f.Value}
	for _, x := range c.Artifact.ActiveExamples() {
		if c.Artifact.SameInput(x.Args, x.Kwargs, f.Args, f.Kwargs) {
			return !Outdated(c, &x, false) && !Meets(was, &x)
		}
	}
	return slices.ContainsFunc(c.Artifact.Verdicts, func(v agent.Verdict) bool {
		return v.Wrong() && c.Artifact.SameInput(v.Args, v.Kwargs, f.Args, f.Kwargs) && equal.Exact(v.Got, f.Value)
	})
}

// ChangedAnswer records the new answer to a fixture.
func ChangedAnswer(f agent.Fixture, now *judge.Judged) agent.ChangedAnswer {
	ch := agent.ChangedAnswer{CallID: f.CallID, SessionID: f.SessionID, Args: f.Args, Kwargs: f.Kwargs, Was: f.Value}
	switch res := now.Result; {
	case res.Authored != nil:
		ch.ErrorType = res.Authored.Type
	case res.Failure != nil:
		ch.ErrorType = res.Failure.Type
	default:
		ch.Now = res.Value
	}
	return ch
}

// Holds reports whether the candidate's proof passed and covers the artifact's current examples and fixtures.
func (cand *Candidate) Holds(now *agent.Artifact) bool {
	cand.turn <- struct{}{}
	defer func() { <-cand.turn }()
	v := &cand.verdict
	return cand.proved && v.Broken == nil && ExamplesDigest(now) == v.Examples && !v.Unseen(cand.Predecessor, now)
}
