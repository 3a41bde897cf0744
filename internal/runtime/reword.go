package runtime

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// reworded reports whether a person has changed what the method is for since the generation was made.
func (in *SelectInput) reworded(g *agent.Generation) bool { return g != nil && g.Reworded(in.Words) }

// outdated reports whether the generation has to be looked at because of that.
func (in *SelectInput) outdated(g *agent.Generation) bool {
	return g != nil && g.Outdated(in.Words)
}

// worded returns the newest kept generation that may answer and was made for the registered wording, or nil.
func (in *SelectInput) worded(a *agent.Artifact) *agent.Generation {
	for _, g := range a.Generations {
		fits := in.CheckedFingerprint == agent.FingerprintNone &&
			g.CheckedFingerprint == a.Current().CheckedFingerprint && !in.others(g) ||
			g.CheckedFingerprint == in.CheckedFingerprint
		if fits && g.MadeFor != nil && !in.reworded(g) && in.serves(a, g) {
			return g
		}
	}
	return nil
}

// whileWaiting selects while the current generation waits for a person. A generation made for the registered wording precedes the waiting one's predecessor.
func (in *SelectInput) whileWaiting(a *agent.Artifact, d Decision, why string) Decision {
	serving := selectServing(*in, a, d, why)
	if serving.Decision != agent.DecideRun || a.Pinned || !in.reworded(serving.Generation) {
		return serving
	}
	if made := in.worded(a); made != nil {
		serving.Generation = made
		return serving
	}
	if in.outdated(d.Generation) {
		return recheck(d, serving.Generation) // the waiting program was written for an outdated wording
	}
	return serving
}

// recheck asks a model to confirm the generation for the registered wording or to write a new one. The generation is the fallback.
func recheck(d Decision, g *agent.Generation) Decision {
	d.Decision, d.Reason, d.Generation, d.Fallback, d.Reworded = agent.DecideForge, ReasonPurposeChanged, g, g, true
	return d
}

// registeredWords returns the digest of the registered wording; "" if the call has its own words.
func (t *terms) registeredWords() agent.WordingDigest {
	if t.words == nil || t.words.Own {
		return ""
	}
	return t.words.ByPerson
}

// madeFor returns MadeFor of the requested program, and the wording that a person confirmed. A program that must reproduce its predecessor's answers inherits
// both.
func (c *selected) madeFor(predecessor *agent.Generation) (*agent.MadeFor, agent.WordingDigest) {
	if predecessor != nil && predecessor.MadeFor != nil && !c.rewrites() {
		return predecessor.MadeFor, predecessor.Confirmed
	}
	return c.madeForNow(), ""
}

// madeForNow is MadeFor of a program for the registered wording.
func (c *selected) madeForNow() *agent.MadeFor {
	if c.terms.words == nil {
		return nil
	}
	m := c.terms.words.Made
	if !c.terms.registered && c.terms.contract != nil { // it is registered with its first program
		m.Purpose = c.terms.contract.Purpose
	}
	return &m
}

// rewrites reports whether the new program is for another wording than its predecessor, so that the predecessor's fixtures do not apply. Corrections always
// keep the predecessor's answers.
func (c *selected) rewrites() bool {
	return c.decision.Reworded && c.decision.Reason != ReasonCorrection
}

// rechecked is the candidate of a reply with unchanged: true.
func (w *writer) rechecked(q forgeRequest, at time.Time) *candidate {
	return &candidate{generation: *q.predecessor, predecessor: q.predecessor, leader: w.id, keeps: true, keptAt: at,
		proof: proof{turn: make(chan struct{}, 1)}}
}

// tryKept holds a program that the model keeps to what a new one would be held to: a person's example counts for more than the model's word. It returns no attempt where
// the program holds all, and for a new program.
func (rec *recovery) tryKept(ctx context.Context, cand *candidate) judged {
	if !cand.keeps {
		return judged{}
	}
	if broken := rec.prove(ctx, cand, rec.adaptive, false); broken != nil {
		return *broken
	}
	return judged{}
}

// keepProgram answers with the confirmed program and records the confirmation.
func (rec *recovery) keepProgram(ctx context.Context, cand *candidate) agent.Outcome {
	made := *rec.madeForNow()
	at := cand.keptAt
	made.Checked = &at
	change := agent.ArtifactChange{Role: rec.role, MethodName: rec.method, At: rec.started,
		Reworded: &agent.Rewording{Of: cand.predecessor.ID, For: made}}
	rec.changes = append(rec.changes, change)
	rec.r.backoffs.clear(rec.backoffKey())
	rec.artifact = rec.artifact.Apply(change)
	g := rec.artifact.Find(cand.predecessor.ID)
	rec.decision = Decision{Decision: agent.DecideRun, Reason: ReasonPurposeChecked, Generation: g}
	return rec.runStored(ctx, g)
}

// staleness returns program.stale of a reply.
func (a *answered) staleness() string {
	if g := a.program; g != nil && a.source == agent.SourcePersisted && g.Outdated(a.terms.registeredWords()) {
		return agent.StalePurpose
	}
	return ""
}

// mayKeep reports whether the model may answer the request by saying that the program is kept.
func (q *forgeRequest) mayKeep() bool { return q.recheck && q.kind == provider.KindForge }

// onlyExamples looks at a program for a changed purpose that broke an example. Where it fails nothing but examples, and answers them, they may be what has to
// change: a person decides, and the proof notes which they are. Else it returns the attempt that shows the fault.
func (c *selected) onlyExamples(ctx context.Context, cand *candidate, broken *judged) *judged {
	how := exampleRun{denied: c.policy.ApprovalRequired || cand.beyond.Load() != nil, guard: c.guardOf(cand)}
	defer func() { cand.wentBeyond(how.guard) }()
	var ids []string
	active := c.artifact.ActiveExamples()
	for i := range active {
		r := c.runExample(ctx, &cand.generation, &active[i], how)
		if r.attempt != nil && r.attempt.class == agent.ClassNone && ctx.Err() != nil {
			return r.attempt
		}
		if r.Result != ExampleFailed {
			continue
		}
		if r.attempt.result.Failure != nil {
			return c.brokenExample(r.attempt, &active[i])
		}
		ids = append(ids, active[i].ID)
	}
	if len(ids) == 0 {
		return broken
	}
	if wrong := c.proveWrongs(ctx, cand, how); wrong != nil {
		return wrong
	}
	cand.proof.breaks = ids
	return nil
}

// rewordedToo returns the prompt's lines on a changed wording in a repair for another deliverable, or "".
func (rec *recovery) rewordedToo(g *agent.Generation) string {
	if !rec.decision.Reworded {
		return ""
	}
	return " What it is for has changed, too, so that what it answered before counts no more. Before: " +
		string(agent.Encoded(g.MadeFor.Wording))
}
