package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/correct"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
)

// An adoption is a candidate that becomes a generation of its artifact in the commit of the call that ran it.
type adoption struct {
	tried    // its attempt is zero if it did not run
	result   agent.Class
	fixture  *agent.Fixture // of the call; nil if it has none
	corrects *correction    // what the call corrects; nil until the detector has run
}

// keepUnapproved adopts the candidate, unless a person holds the artifact. It must not answer calls before a person
// approves it. The previous program answers this call, even if with its failure. Without a previous program, the call
// fails.
func (rec *recovery) keepUnapproved(t *tried) agent.Outcome {
	rec.trail.RepairEnded(rec.Call, true)
	if !rec.held() {
		rec.adopting, rec.waits = &adoption{tried: *t, result: agent.ClassNone}, true
	}
	if rec.failed.ID == "" {
		return rec.waitsForApproval(t.Beyond.Load())
	}
	rec.ran(agent.SourcePersisted, rec.failed.Program, rec.failed)
	return withWaiting(&rec.Selection, rec.keep(rec.failed), rec.adopting.waitsFor())
}

// waitsFor returns what the waiting candidate reaches beyond its predecessor. It returns nil if there is nothing, or if
// a is nil because nothing is adopted.
func (a *adoption) waitsFor() *agent.Effects {
	if a == nil {
		return nil
	}
	return a.Beyond.Load()
}

// waitsForApproval returns the outcome of a call whose only program waits for a person's approval. beyond is what the
// program reaches beyond its predecessor; nil means nothing.
func (rec *recovery) waitsForApproval(beyond *agent.Effects) agent.Outcome {
	rec.source = agent.SourceNone
	said := fmt.Sprintf("the program of %s.%s waits for a person's approval: ", rec.Role, rec.Method)
	if beyond != nil {
		a := approvalOfReach(&rec.Selection, beyond)
		o := agent.Failed(agent.ErrDenied, said+a.Message)
		o.Metadata = map[string]any{"approve": a.Request, "lacks": a.Details}
		return o
	}
	o := agent.Failed(agent.ErrDenied,
		said+"recurgentd tools approve "+attempt.ShellWord(rec.Role)+" "+attempt.ShellWord(rec.Method))
	o.Metadata = map[string]any{"approve": "POST " + attempt.ToolPath(rec.Role, rec.Method) + "/approve"}
	return o
}

// held reports whether a person has quarantined or pinned the artifact.
func (rec *recovery) held() bool {
	return rec.Artifact != nil && (rec.Artifact.Quarantined || rec.Artifact.Pinned)
}

// adoptOrDrop answers the call with a candidate that served. It adopts the candidate unless a person holds the
// artifact, or unless the attempt proves nothing about the candidate.
func (rec *recovery) adoptOrDrop(ctx context.Context, t *tried) agent.Outcome {
	cand, j := t.Candidate, t.attempt
	keepable := !rec.SwitchedOff() || !rec.held() && rec.reproduces(ctx, t)
	proven := len(t.proof.Kept) > 0
	waits := j.Unallowed && cand.Predecessor == nil // the program is sound: only a person's approval is missing
	worth := waits || j.Class == agent.ClassOK || j.PassedOn || j.Class == agent.ClassAuthored &&
		(j.Outcome.ErrorType == agent.ErrInvalidInput || proven)
	switch {
	case !keepable:
		rec.countUnkept(rec.Artifact)
	case rec.Decision.Reason == selection.ReasonArgsIgnored && !cand.Generation.Cacheable:
		rec.ignoredAgain(t)
	case worth && !rec.held():
		rec.adopting = &adoption{tried: *t, result: j.Class}
		if j.Outcome.OK() {
			rec.adopting.fixture = rec.ProvenFixture(ctx, &cand.Generation, j)
		}
	case j.Class == agent.ClassOK:
		rec.countUnkept(rec.Artifact)
	}
	// these two classes prove nothing about the repair
	if j.Class != agent.ClassNone && j.Class != agent.ClassExtrinsic {
		rec.trail.RepairEnded(rec.Call, j.Class == agent.ClassOK || rec.adopting != nil)
	}
	return rec.keep(j)
}

// reproduces reports whether a program that was written without regard to the stored one gives the stored program's
// answers, and adds that to its proof. The candidate answers the call either way.
func (rec *recovery) reproduces(ctx context.Context, t *tried) bool {
	var broken *judge.Judged
	t.proof.Reproduced, broken = proof.Reproduces(ctx, t.Candidate.Candidate, &rec.Against)
	return broken == nil
}

// adopt commits the call with its candidate as the artifact's new generation. If several calls share a candidate, the
// first to get here adopts it; the others only count their results on it.
func (a *answered) adopt() (CallResult, error) {
	cand := a.adopting.Candidate
	cand.Turn.Lock()
	defer cand.Turn.Unlock()
	change := a.adoptedResult()
	// Another call that shares the candidate adopted it: only count this call's result.
	if cand.Adopted != "" {
		change.ResultOf, a.generation = cand.Adopted, cand.Adopted
		a.changes = append(a.changes, change)
		return a.persist()
	}
	// Lock order: the candidate first, then its method.
	unlock := a.r.lockAdoption(turns.Method{Role: a.Role, Method: a.Method})
	defer unlock()
	before, generation := len(a.changes), a.generation
	for range adoptionTries {
		res, err := a.adoptOn(change)
		if !errors.Is(err, store.ErrConflict) {
			return res, err
		}
		// another replica changed the artifact: decide again on its current state
		a.changes, a.generation = a.changes[:before], generation
	}
	return a.persistUnkept(a.Artifact)
}

// adoptionTries bounds how often an adoption is decided again after another replica changed the artifact. After that
// the call is committed without it.
const adoptionTries = 4

// persistUnkept commits the call without its candidate. now is the newest known state of the artifact; nil if there is
// none.
func (a *answered) persistUnkept(now *agent.Artifact) (CallResult, error) {
	if a.adopting.result == agent.ClassOK {
		a.countUnkept(now)
	}
	return a.persist()
}

// countUnkept counts an answer by a program that does not become a generation. The answer counts for the method alone.
// If stored programs are switched off, or the artifact in now is quarantined, it is counted separately as unkept.
func (a *answered) countUnkept(now *agent.Artifact) {
	if a.SwitchedOff() || now != nil && now.Quarantined {
		a.unkept = true
		a.changes = append(a.changes, agent.ArtifactChange{Role: a.Role, MethodName: a.Method, At: a.Started,
			Unkept: true})
		return
	}
	a.changes = append(a.changes, agent.ArtifactChange{Role: a.Role, MethodName: a.Method, At: a.Started,
		Result: agent.ClassOK, ResultOf: agent.NoGeneration})
}

// adoptOn decides the adoption on the artifact's stored state. It returns store.ErrConflict if the artifact changed in
// the meantime; then nothing was committed.
func (a *answered) adoptOn(change agent.ArtifactChange) (CallResult, error) {
	cand, proved := a.adopting.Candidate, &a.adopting.proof
	now, err := a.Env.Store.Artifact(a.Env.Within(), a.Role, a.Method)
	decided := int64(0)
	if err == nil {
		decided = now.AdoptionRevision()
	} else {
		now = &agent.Artifact{} // either the first generation, or the artifact's file was damaged
	}
	if g := cand.AdoptedElsewhere(now); g != nil {
		change.ResultOf, a.generation, cand.Adopted = g.ID, g.ID, g.ID
		a.changes = append(a.changes, change)
		return a.persist()
	}
	if heldMeanwhile(a.Artifact, now) {
		return a.persistUnkept(now) // a person's operation takes precedence over a forged program
	}
	unlooked := a.UnderSwitch() && cand.Predecessor == nil && now.Current() != nil
	if unlooked || proof.ExamplesDigest(now) != proved.Examples || proved.Unseen(cand.Predecessor, now) {
		return a.persistUnkept(now) // the examples or the recorded answers changed since the proof
	}
	g := cand.Generation
	g.ID = now.NextGenerationID()
	if cand.Predecessor != nil {
		g.ParentID = &cand.Predecessor.ID
	}
	g.Fixtures, g.ChangedAnswers, g.Breaks = proved.Fixtures(), proved.Changed, proved.Breaks
	g.Beyond = cand.Beyond.Load()
	g.ForgeUsage = a.trail.Usage
	g.ForgeUsage.Add(cand.Cost)
	change.Decided = &decided
	// else the previous program answered, and this one waits for approval
	if change.Generation = &g; a.source != agent.SourcePersisted {
		a.generation = g.ID
	}
	change.Aside = a.UnderSwitch()
	if a.Terms.Words != nil {
		change.Words = a.Terms.Words.ByPerson
	}
	if a.drifted != nil {
		change.Drifted = a.drifted
	}
	// the program holds what the correction must hold
	if now.Correction.Pending() && !change.Aside && len(g.Breaks) == 0 {
		change.Correction = correct.Adopted(now.Correction, &g, a.Policy)
	}
	a.changes = append(a.changes, change)
	res, err := a.persist()
	if err == nil {
		cand.Adopted = g.ID
	}
	return res, err
}

// adoptedResult returns the change that counts the candidate's attempt.
func (a *answered) adoptedResult() agent.ArtifactChange {
	j := &a.adopting.attempt
	change := agent.ArtifactChange{Role: a.Role, MethodName: a.Method, At: a.Started, Result: a.adopting.result,
		SessionID: a.Session.ID,
		Checked:   j.Checked, CheckPassed: j.Checked, Shapes: j.Shapes, Outlines: j.Outlines,
		Owner: agent.LoggedOwner(a.Reader()), Unrun: j.Misfit}
	if a.outcome.OK() {
		change.Caller = callerOf(a.Call, &a.adopting.Generation)
		change.Fixture, change.Answered = a.adopting.fixture, judge.AnsweredInput(a.Call, *j)
		if j.Outcome.OK() {
			change.Effects = j.FirstSeen(nil)
		}
		change.Grow = a.Policy.Effects == agent.EffectsObserve
	} else {
		change.ErrorType, change.Reason = a.outcome.ErrorType, agent.Clip(a.Mask(a.outcome.ErrorMessage), 400)
	}
	return change
}

// callerOf returns the call's owner, to be counted as a caller of a generation that answered ok. It returns "" for a
// nested call, and for an owner whom the generation already knows.
func callerOf(c *call.Call, g *agent.Generation) string {
	if c.Depth > 0 || g.KnowsCaller(c.Owner) {
		return ""
	}
	return c.Owner
}

// heldMeanwhile reports whether a person took control of the artifact after the call read it: by a quarantine, a pin, a
// rollback to an older generation, or by storing a program.
func heldMeanwhile(was, now *agent.Artifact) bool {
	if was == nil {
		was = &agent.Artifact{}
	}
	if now.Quarantined || now.Pinned {
		return true
	}
	g := now.Current()
	return g != nil && now.CurrentID != was.CurrentID && (was.Find(g.ID) != nil ||
		strings.HasPrefix(g.Trigger, "operator:"))
}

// ignoredAgain counts an answer by a program that was meant to read the call's arguments but does not. The program is
// not adopted, since the stored one already answers such calls without them. If both answered earlier calls alike,
// arguments of this shape are recorded as needless, and the model is not asked about them again. A program with the
// arguments in its text proves nothing.
func (rec *recovery) ignoredAgain(t *tried) {
	j := t.attempt
	if j.Class == agent.ClassOK {
		rec.countUnkept(rec.Artifact)
	}
	if g := rec.Decision.Generation; g != nil && j.Class == agent.ClassOK && len(t.proof.Kept) > 0 &&
		t.Generation.CacheabilityReason == forge.CacheIgnored {
		rec.changes = append(rec.changes, agent.ArtifactChange{Role: rec.Role, MethodName: rec.Method, At: rec.Started,
			ResultOf: g.ID, Needless: agent.ShapeOfArguments(len(rec.Args), rec.Kwargs)})
	}
}
