package runtime

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// reworded reports whether a person has changed what the method is for since the generation was made.
func (in *SelectInput) reworded(g *agent.Generation) bool { return g != nil && g.Reworded(in.Words) }

// worded returns the newest kept generation that was made for what people want of the method now, and that may answer; nil when there is none.
func (in *SelectInput) worded(a *agent.Artifact) *agent.Generation {
	for _, g := range a.Generations {
		fits := in.CheckedFingerprint == agent.FingerprintNone && g.CheckedFingerprint == a.Current().CheckedFingerprint || g.CheckedFingerprint == in.CheckedFingerprint
		if fits && g.MadeFor != nil && !in.reworded(g) && in.serves(a, g) {
			return g
		}
	}
	return nil
}

// whileWaiting selects while the current generation waits for a person. What was made for the words of now goes before what waits was made in the place of.
func (in *SelectInput) whileWaiting(a *agent.Artifact, d Decision, why string) Decision {
	serving := selectServing(*in, a, d, why)
	if serving.Decision != agent.DecideRun || a.Pinned || !in.reworded(serving.Generation) {
		return serving
	}
	if made := in.worded(a); made != nil {
		serving.Generation = made
		return serving
	}
	if in.reworded(d.Generation) {
		return recheck(d, serving.Generation) // what waits was written for what the method is for no more
	}
	return serving
}

// recheck has a model say whether the generation does what the method is for now, or write another one. Until that is known the generation answers.
func recheck(d Decision, g *agent.Generation) Decision {
	d.Decision, d.Reason, d.Generation, d.Fallback, d.Reworded = agent.DecideForge, ReasonPurposeChanged, g, g, true
	return d
}

// registeredWords is the digest of what people have registered, "" where the call has words of its own.
func (t *terms) registeredWords() agent.WordingDigest {
	if t.words == nil || t.words.Own {
		return ""
	}
	return t.words.ByPerson
}

// madeFor is for what the program that is asked for is made, and the wording for which a person stands by it. A program that takes the place of another, and
// answers as that did, is made for the same.
func (c *selected) madeFor(predecessor *agent.Generation) (*agent.MadeFor, agent.WordingDigest) {
	if predecessor != nil && predecessor.MadeFor != nil && !c.rewrites() {
		return predecessor.MadeFor, predecessor.Confirmed
	}
	return c.madeForNow(), ""
}

// madeForNow is for what a program is made that does what the method is for now.
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

// rewrites reports whether a new program is to do what the method is for now, and its predecessor was made for something else: then what that
// answered is no test. A correction is of the answers that there were.
func (c *selected) rewrites() bool {
	return c.decision.Reworded && c.decision.Reason != ReasonCorrection
}

// rechecked is the candidate of a reply that says that the program does what the method is for now.
func (w *writer) rechecked(q forgeRequest, at time.Time) *candidate {
	return &candidate{generation: *q.predecessor, predecessor: q.predecessor, leader: w.id, keeps: true, keptAt: at, proof: proof{turn: make(chan struct{}, 1)}}
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

// keepProgram answers with the program that the model was asked about, and keeps that it was.
func (rec *recovery) keepProgram(ctx context.Context, cand *candidate) agent.Outcome {
	made := *rec.madeForNow()
	at := cand.keptAt
	made.Checked = &at
	change := agent.ArtifactChange{Role: rec.role, MethodName: rec.method, At: rec.started, Reworded: &agent.Rewording{Of: cand.predecessor.ID, For: made}}
	rec.changes = append(rec.changes, change)
	rec.r.backoffs.clear(rec.backoffKey())
	rec.artifact = rec.artifact.Apply(change)
	g := rec.artifact.Find(cand.predecessor.ID)
	rec.decision = Decision{Decision: agent.DecideRun, Reason: ReasonPurposeChecked, Generation: g}
	return rec.runStored(ctx, g)
}

// staleness is what a reply says of the program that answered: why it may not do what is wanted, or "".
func (a *answered) staleness() string {
	if g := a.program; g != nil && a.source == agent.SourcePersisted && g.Reworded(a.terms.registeredWords()) {
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

// rewordedToo says to a model that is to repair a program for another deliverable what else people have changed, "" for nothing.
func (rec *recovery) rewordedToo(g *agent.Generation) string {
	if !rec.decision.Reworded {
		return ""
	}
	return " What it is for has changed, too, so that what it answered before counts no more. Before: " + string(agent.Encoded(g.MadeFor.Wording))
}
