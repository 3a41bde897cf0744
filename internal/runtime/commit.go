package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/runtime/lifecycle"
	"github.com/recurgentd/recurgentd/internal/store"
)

var replyCode = jsonenc.For[Reply]()

// commit ends every call: one store commit with one record and one log entry, then the metrics. It is not cut short
// when the client leaves. An error means that nothing was committed.
func (a *answered) commit() (CallResult, error) {
	defer a.trail.Leave() // after the candidate is stored: until then other calls may join its flight
	defer func() { attempt.Discard(a.Drafts) }()
	// Bound the answer before the adoption: if there is no room for it, the attempt must not count for its program.
	a.bound()
	a.outcome = a.Named(a.outcome)
	if a.adopting != nil {
		return a.adopt()
	}
	return a.persist()
}

// noticed holds the detectors' findings on an answered call. They do not change its outcome.
type noticed struct {
	weak            []string // reasons why it is a weak success
	correction      correction
	state, decision string // of the artifact's lifecycle
}

// notice runs the detectors.
func (a *answered) notice() noticed {
	var n noticed
	if a.outcome.OK() && a.programSource() != agent.SourceNone {
		n.weak = evolve.Weak(a.outcome.Value, a.Terms.Deliverable(), a.Policy.WeakSuccess)
	}
	n.correction = a.corrects(n.weak)
	n.state, n.decision = lifecycle.Of(&lifecycle.Answer{Artifact: a.Artifact, Policy: a.Policy, Session: a.Session.ID,
		Generation: a.generation, Stored: a.source == agent.SourcePersisted, Adopts: a.adopting != nil,
		OK: a.outcome.OK(), Changes: a.changes})
	return n
}

// corrects returns what the call corrects. A call with an adoption may be committed more than once, but is observed
// only once.
func (a *answered) corrects(weak []string) correction {
	if a.adopting == nil {
		return a.r.recent.observe(a, weak)
	}
	if a.adopting.corrects == nil {
		c := a.r.recent.observe(a, weak)
		a.adopting.corrects = &c
	}
	return *a.adopting.corrects
}

// remains groups the values of a commit in one allocation; a warm call would otherwise make five.
type remains struct {
	commit  store.CallCommit
	reply   Reply
	tool    [1]store.ToolChange
	content store.Content
	pattern agent.PatternEvent
}

// persist commits the call, then reports it to metrics and traces. Long work runs in the owner's share of heavy work,
// even for a call that has ended, because it must be recorded.
func (a *answered) persist() (CallResult, error) {
	r := a.r
	kept := &remains{}
	body, err := a.prepare(kept)
	if err != nil {
		return CallResult{}, fmt.Errorf("encode the reply of call %s: %w", a.ID, err)
	}
	commit := &kept.commit
	commit.Files = a.newFiles()
	began := r.env.Now()
	if err := r.commitCall(commit); err != nil {
		if !errors.Is(err, store.ErrConflict) { // else the adoption is decided again
			r.Fenced(commit, err)
			a.notAppended(err)
		}
		return CallResult{}, err
	}
	ended := r.env.Now()
	a.stages.Commit = ended.Sub(began)
	a.Span.Stage("commit", began, ended)
	a.Span.EndCall(&commit.Log, ended)
	r.env.Metrics.ObserveCall(&commit.Log, a.stages)
	a.countSaved()
	return CallResult{Body: body, CallID: a.ID, TraceID: a.TraceID, Role: a.Role, Method: a.Method, OK: a.outcome.OK()},
		nil
}

// prepare builds the reply and the commit, except for the commit's files.
func (a *answered) prepare(kept *remains) (body []byte, err error) {
	owner, weight := a.Env.Owner(a.Owner), len(a.outcome.Value)+len(a.last.Result.Effects.Journal)
	// no deadline is needed: every holder of a place gives it back without waiting for anything else
	if err := a.Env.Heavy.Enter(context.Background(), owner, weight); err != nil {
		return nil, err
	}
	defer a.Env.Heavy.Leave(owner, weight)
	n := a.notice()
	a.weak = len(n.weak) > 0
	took := agent.Milliseconds(a.Env.Now().Sub(a.Started))
	kept.reply = a.reply(took)
	if body, err = replyCode.Marshal(&kept.reply, 768+len(a.outcome.Value)); err != nil {
		return nil, err
	}
	commit := &kept.commit
	*commit = store.CallCommit{SessionID: a.Session.ID, Record: a.record(took), Context: a.context,
		Artifacts: a.changes,
		Tools:     a.toolChanges(kept), Outcome: a.keptOutcome(), Key: a.open.key.Stored(), Fence: a.Fence,
		Ordered: a.open.leaveTurn}
	commit.Pattern = a.pattern(kept, n, commit.Record.Timestamp)
	if a.valueLost && a.outcome.OK() {
		commit.Outcome = agent.Outcome{} // as if its retention period were over
	}
	if a.kept && !a.valueLost {
		commit.Effects, a.hidden = a.MaskJSON(a.last.Result.Effects.Journal)
	}
	commit.Log = a.logEntry(n, &commit.Record)
	if a.open.key != nil {
		commit.Reply = body
	}
	a.keepContent(kept)
	return body, nil
}

// notAppended logs and counts a call whose commit failed. Such a call has no history record and no entry in the call
// log.
func (a *answered) notAppended(err error) {
	a.Span.EndFailed("commit", a.Env.Now())
	a.Env.Metrics.AppendFailed()
	a.Env.Logger.Error().Err(err).Str("call_id", a.ID).Str("session_id", a.Session.ID).Int("depth",
		a.Depth).Bool("history_record_appended", false).
		Msg("a call could not be committed")
}

// commitCall commits with a deadline of its own, because neither a leaving client nor a shutdown may cut a commit
// short.
func (r *Runtime) commitCall(commit *store.CallCommit) error {
	return r.env.Store.CommitCall(r.env.Within(), commit)
}

// countSaved counts the model requests that a warm call saved: the cost of forging its generation.
func (a *answered) countSaved() {
	if a.source != agent.SourcePersisted || !a.outcome.OK() {
		return
	}
	if g := a.Artifact.Find(a.generation); g != nil {
		a.Env.Metrics.Saved(max(1, g.ForgeUsage.ModelRequests), g.ForgeUsage.PromptTokens+g.ForgeUsage.CompletionTokens)
	}
}

// own returns the model usage of the call itself: for writing programs, and for its programs' questions.
func (a *answered) own() agent.Usage {
	total := a.trail.Usage
	total.Add(a.predicted)
	return total
}

// usage returns the model usage of the call. The client's call, at depth 0, includes the nested calls below it.
func (a *answered) usage() agent.Usage {
	total := a.own()
	if a.Depth == 0 {
		total.Add(a.Tree.Usage)
	}
	return total
}

// doubted reports whether a person has judged an answer of the stored program wrong.
func (a *answered) doubted() bool {
	return a.program != nil && a.source == agent.SourcePersisted && a.Artifact.Doubted(a.program.ID)
}

// reply returns the call's reply, as the client and a later replay get it.
func (a *answered) reply(took float64) Reply {
	p := Program{Source: a.programSource(), ArtifactHit: a.source == agent.SourcePersisted, Generation: a.generation,
		Selection: a.Decision.Logged()}
	p.Engine, p.Tier = a.last.RanOn(a.facts)
	p.BuildMs = agent.Milliseconds(a.trail.Built)
	if g := a.program; g != nil {
		p.Checksum, p.Trigger, p.Doubted, p.Stale = g.CodeChecksum, g.Trigger, a.doubted(), a.staleness()
	}
	return Reply{CallID: a.ID, SessionID: a.Session.ID, TraceID: a.TraceID, Role: a.Role, Method: a.Method,
		Outcome: a.outcome,
		Program: p, Attempts: max(1, a.attempts, a.trail.Requested), DurationMs: took, Usage: a.usage()}
}

// record returns the call's history record. It holds a summary of the outcome without its value.
func (a *answered) record(took float64) agent.Record {
	o := a.outcome
	rec := agent.Record{CallID: a.ID, Timestamp: agent.FormatTime(a.Started), Speaker: a.Speaker, Role: a.Role,
		MethodName: a.Method,
		Args:       a.Shown().Args, Kwargs: a.Shown().Kwargs, OutcomeSummary: agent.Summarize(o), TraceID: a.TraceID,
		ParentCallID: a.Parent,
		AttemptID:    a.ParentAttempt, Depth: a.Depth, DurationMs: took, ProgramSource: a.programSource(),
		ArtifactHit: a.source == agent.SourcePersisted}
	rec.OutcomeSummary.FailureClass = a.failureClass()
	if !o.OK() {
		rec.ErrorType, rec.ErrorMessage = o.ErrorType, a.Mask(lastMessage(o))
		return rec
	}
	if fetches := a.last.Result.Effects.Fetches; a.kept && len(fetches) > 0 {
		rec.OutcomeSummary.SourceCount = len(fetches)
		rec.OutcomeSummary.PrimaryURI = fetches[0].URL
		rec.OutcomeSummary.RetrievalMode = fetches[0].Mode
	}
	return rec
}

// keepContent stores the result of a client's call for follow-ups, under a reference in the call's record.
func (a *answered) keepContent(kept *remains) {
	value := kept.commit.Outcome.Value
	most := a.Policy.Retention.ContentBytes // 0 means no bound
	if a.Depth > 0 || !a.outcome.OK() || a.valueLost || a.programSource() == agent.SourceNone ||
		most > 0 && len(value) > most {
		return
	}
	sum := sha256.Sum256(value)
	const ref, digest = len("content:") + sha256.Size, len("sha256:") + 2*sha256.Size
	var text [ref + digest]byte // backs both strings
	hex.Encode(text[copy(text[:], "content:"):], sum[:sha256.Size/2])
	hex.Encode(text[ref+copy(text[ref:], "sha256:"):], sum[:])
	both := string(text[:])
	s := &kept.commit.Record.OutcomeSummary
	s.ContentRef, s.ContentKind, s.ContentBytes, s.ContentDigest = both[:ref], s.ValueClass, len(value), both[ref:]
	kept.content = store.Content{Ref: s.ContentRef, Value: value}
	kept.commit.Content = &kept.content
}

// toolChanges counts the use of a registered role. It registers a role with its first program. A role whose entry was
// lost, for example with a damaged registry, is registered again when a stored program answers.
func (a *answered) toolChanges(kept *remains) []store.ToolChange {
	stored := a.source == agent.SourcePersisted && a.Artifact != nil
	if !a.Terms.Registered && a.adopting == nil && !stored {
		return nil
	}
	change := &kept.tool[0]
	*change = store.ToolChange{Role: a.Role, At: a.Started, Used: 1}
	if !a.Terms.Registered {
		change.Register, change.IfAbsent, change.ByUse, change.Owner = &agent.Contract{}, true, true, a.Owner
		if stored {
			change.Owner = a.Artifact.Owner
		}
		if a.Terms.Contract != nil {
			change.Register.Purpose = a.Terms.Contract.Purpose
		}
	}
	return kept.tool[:]
}

// pattern returns the call's capability event, or nil if its program uses no capability and the answer is not weak.
func (a *answered) pattern(kept *remains, n noticed, at string) *agent.PatternEvent {
	weak := len(n.weak) > 0
	if a.facts == nil || len(a.facts.CapabilityPatterns) == 0 && !weak {
		return nil
	}
	kept.pattern = agent.PatternEvent{CallID: a.ID, SessionID: a.Session.ID, Timestamp: at, Role: a.Role,
		MethodName: a.Method,
		Depth:      a.Depth, ParentCallID: a.Parent, RootCallID: a.Root, Capabilities: a.facts.CapabilityPatterns,
		Status: a.outcome.Status, WeakSuccess: weak}
	return &kept.pattern
}

// keptOutcome returns the outcome as it is stored. A value is the caller's and stays as it is, except that secrets the
// caller gave are masked.
func (a *answered) keptOutcome() agent.Outcome {
	o := a.outcome
	o.Value, _ = a.Shown().Known.JSON(o.Value)
	if !o.OK() {
		o.ErrorMessage, o.Metadata = a.Mask(o.ErrorMessage), a.MaskData(o.Metadata)
	}
	return o
}

// newFiles returns the drafts that the call's value, or its change of the context, refers to.
func (a *answered) newFiles() (kept []store.NewFile) {
	if len(a.Drafts) == 0 || !a.outcome.OK() {
		return nil
	}
	refs := agent.FileRefs(a.outcome.Value)
	if a.context != nil {
		for _, v := range a.context.Set {
			refs = append(refs, agent.FileRefs(v)...)
		}
	}
	for _, d := range a.Drafts {
		if slices.Contains(refs, d.ID()) {
			kept = append(kept, d.New())
		}
	}
	return kept
}
