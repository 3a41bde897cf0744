package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/store"
)

// adoption makes a candidate a generation of its artifact, together with the call that proved it.
type adoption struct {
	candidate *candidate
	result    agent.Class
	attempt   attempt
}

// finish is the one way out of every call: one commit, one record, one log entry, then the metrics. It does not end
// early with its client. An error means that nothing was kept.
func (c *call) finish(o agent.Outcome) (CallResult, error) {
	defer func() {
		for _, leave := range c.leaves {
			leave() // not before the candidate is stored: until then others may join it
		}
	}()
	o = c.outcome(o)
	if c.adopting != nil {
		return c.adopt(o)
	}
	return c.commit(o)
}

// adopt commits the call with its candidate as the artifact's new generation. Of calls that share a candidate the
// first to get here adopts it, the others count on it.
func (c *call) adopt(o agent.Outcome) (CallResult, error) {
	ad := c.adopting
	cand := ad.candidate
	cand.mu.Lock()
	defer cand.mu.Unlock()
	change := agent.ArtifactChange{Role: c.role, MethodName: c.method, At: c.started, Result: ad.result, SessionID: c.session.ID,
		Checked: ad.attempt.checked, CheckPassed: ad.attempt.checked, Shapes: ad.attempt.shapes}
	if !o.OK() {
		change.ErrorType, change.Reason = o.ErrorType, clip(o.ErrorMessage, 400)
	} else {
		change.Fixture = c.fixture(&cand.generation, ad.attempt)
	}
	if cand.adopted != "" {
		change.ResultOf, c.found.generation = cand.adopted, cand.adopted
		c.changes = append(c.changes, change)
		return c.commit(o)
	}
	unlock := c.r.adoption.lock(methodKey{c.role, c.method})
	defer unlock()
	g := cand.generation
	now, err := c.r.store.Artifact(context.Background(), c.role, c.method)
	if err != nil {
		now = &agent.Artifact{} // the first generation, or that of an artifact set aside as corrupt
	}
	if heldMeanwhile(c.artifact, now) {
		return c.commit(o) // a person's act counts for more than a program that was under way
	}
	g.ID = now.NextGenerationID()
	if cand.predecessor != nil {
		g.ParentID = &cand.predecessor.ID
	}
	g.Fixtures = cand.proof.kept
	g.ForgeUsage = c.found.usage
	change.Generation, c.found.generation = &g, g.ID
	c.changes = append(c.changes, change)
	res, err := c.commit(o)
	if err == nil {
		cand.adopted = g.ID
	}
	return res, err
}

// heldMeanwhile reports whether a person took hold of the artifact since the call looked at it: quarantined or pinned it,
// went back to an older generation, or put in a program.
func heldMeanwhile(was, now *agent.Artifact) bool {
	if was == nil {
		was = &agent.Artifact{}
	}
	if now.Quarantined || now.Pinned {
		return true
	}
	g := now.Current()
	return g != nil && now.CurrentID != was.CurrentID && (was.Find(g.ID) != nil || strings.HasPrefix(g.Trigger, "operator:"))
}

// commit writes the call down and tells metrics of it.
func (c *call) commit(o agent.Outcome) (CallResult, error) {
	r := c.r
	c.look(o)
	took := milliseconds(r.o.Now().Sub(c.started))
	body, err := json.Marshal(c.reply(o, took))
	if err != nil {
		return CallResult{}, fmt.Errorf("encode the reply of call %s: %w", c.id, err)
	}
	commit := store.CallCommit{SessionID: c.session.ID, Record: c.record(o, took), Context: c.found.context, Artifacts: c.changes,
		Tools: c.toolChanges(), Pattern: c.pattern(o), Outcome: o, Effects: c.found.effects.Journal, Key: c.key}
	commit.Log = c.logEntry(o, &commit.Record)
	if c.key != nil {
		commit.Reply = body
	}
	c.content(o, &commit)
	began := r.o.Now()
	if err := r.store.CommitCall(context.Background(), &commit); err != nil {
		c.span.EndFailed("commit", r.o.Now())
		return CallResult{}, err
	}
	ended := r.o.Now()
	c.stages.Commit = ended.Sub(began)
	c.span.Stage("commit", began, ended)
	c.span.EndCall(&commit.Log, ended)
	r.metrics.ObserveCall(&commit.Log, c.stages)
	r.feed.publish(&commit.Log)
	if c.found.source == agent.SourcePersisted && o.OK() {
		r.saved(c)
	}
	return CallResult{Body: body, CallID: c.id, TraceID: c.traceID, OK: o.OK()}, nil
}

// saved counts the model's work that a warm call did without: what its generation cost to forge.
func (r *Runtime) saved(c *call) {
	if g := c.artifact.Find(c.found.generation); g != nil {
		r.metrics.Saved(max(1, g.ForgeUsage.ModelRequests), g.ForgeUsage.PromptTokens+g.ForgeUsage.CompletionTokens)
	}
}

// look has the detectors look at the outcome; they change nothing of it (C-01).
func (c *call) look(o agent.Outcome) {
	f := &c.found
	if o.OK() && f.source != agent.SourceNone {
		f.weak = evolve.Weak(o.Value, c.deliverable(), c.p.WeakSuccess)
	}
	f.correction = c.r.recent.look(c, o)
	c.lifecycle(o)
}

func (c *call) deliverable() json.RawMessage {
	if c.contract == nil {
		return nil
	}
	return c.contract.Deliverable
}

func (c *call) reply(o agent.Outcome, took float64) Reply {
	f := &c.found
	engine, tier := engineOf(f.facts)
	return Reply{CallID: c.id, SessionID: c.session.ID, TraceID: c.traceID, Role: c.role, Method: c.method, Outcome: o,
		Program: Program{Source: c.source(), Engine: engine, Tier: tier, ArtifactHit: f.source == agent.SourcePersisted, Generation: f.generation, Checksum: f.checksum,
			Trigger: f.trigger, Selection: f.selection},
		Attempts: max(1, c.attempts, f.requested), DurationMs: took, Usage: f.usage}
}

// source is where the program came from; none when no program ran.
func (c *call) source() string {
	if c.found.source == "" {
		return agent.SourceNone
	}
	return c.found.source
}

func (c *call) record(o agent.Outcome, took float64) agent.Record {
	f := &c.found
	rec := agent.Record{CallID: c.id, Timestamp: agent.FormatTime(c.started), Speaker: c.speaker, Role: c.role, MethodName: c.method,
		Args: c.maskedArgs, Kwargs: c.maskedKwargs, OutcomeSummary: agent.Summarize(o), TraceID: c.traceID, ParentCallID: c.parent,
		AttemptID: c.attempt, Depth: c.depth, DurationMs: took, ProgramSource: c.source(), ArtifactHit: f.source == agent.SourcePersisted}
	if !o.OK() {
		rec.ErrorType, rec.ErrorMessage = o.ErrorType, o.ErrorMessage
	}
	if n := len(f.effects.Fetches); n > 0 && o.OK() {
		rec.OutcomeSummary.SourceCount = n
		rec.OutcomeSummary.PrimaryURI = f.effects.Fetches[0].URL
		rec.OutcomeSummary.RetrievalMode = f.effects.Fetches[0].Mode
	}
	return rec
}

// content keeps the result of a client's call for follow-ups, under a reference that its record tells.
func (c *call) content(o agent.Outcome, commit *store.CallCommit) {
	if c.depth > 0 || !o.OK() || c.found.source == agent.SourceNone || c.p.Retention.ContentEntries == 0 || len(o.Value) > c.p.Retention.ContentBytes {
		return
	}
	sum := sha256.Sum256(o.Value)
	digest := hex.EncodeToString(sum[:])
	s := &commit.Record.OutcomeSummary
	s.ContentRef, s.ContentKind, s.ContentBytes, s.ContentDigest = "content:"+digest[:32], s.ValueClass, len(o.Value), "sha256:"+digest
	commit.Content = &store.Content{Ref: s.ContentRef, Value: o.Value}
}

// toolChanges counts the use of a registered role, and makes a role known with its first program.
func (c *call) toolChanges() []store.ToolChange {
	switch {
	case c.found.registered:
		return []store.ToolChange{{Role: c.role, At: c.started, Used: 1}}
	case c.adopting != nil:
		k := agent.Contract{}
		if c.contract != nil {
			k.Purpose = c.contract.Purpose
		}
		return []store.ToolChange{{Role: c.role, At: c.started, Used: 1, Register: &k, IfAbsent: true}}
	}
	return nil
}

func (c *call) pattern(o agent.Outcome) *agent.PatternEvent {
	f := c.found.facts
	weak := len(c.found.weak) > 0
	if c.depth > 0 || f == nil || len(f.CapabilityPatterns) == 0 && !weak {
		return nil
	}
	return &agent.PatternEvent{CallID: c.id, SessionID: c.session.ID, Timestamp: agent.FormatTime(c.started), Role: c.role, MethodName: c.method,
		Capabilities: f.CapabilityPatterns, Status: o.Status, WeakSuccess: weak}
}
