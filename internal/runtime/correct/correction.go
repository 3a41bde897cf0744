package correct

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Trigger is the trigger of a program that was forged because a person judged an answer wrong.
const Trigger = "regenerate:correction"

// Most is how often a correction is tried before it is left to people.
const Most = 8

// retryAfter is how long the lease on a correction outlives a replica that died during it. It is also the delay before
// a correction is tried again after the store failed.
const retryAfter = 15 * time.Second

// ErrContractUnknown means that the contract a correction must keep is not known any more.
var ErrContractUnknown = errors.New(
	"the program was written for the contract of somebody's call, which is not known any more: call the method with it again")

// attempt makes one attempt. It returns when to try again; zero means never. Its steps:
//
//	input → proof.Against  the judged input and its contract: what the correction must hold
//	write → written        a program that a model wrote and that holds it
//	adopt                  the program becomes the current generation
func (c *Corrector) attempt(ctx context.Context, k turns.Method, actor string) time.Time {
	release, err := c.alone(ctx, k)
	if err != nil {
		return c.Env.Now().Add(retryAfter)
	}
	defer release()
	a, err := c.Env.Store.Artifact(ctx, k.Role, k.Method)
	if err != nil {
		return c.unlessAway(err, time.Time{})
	}
	if !a.Correction.Pending() || len(a.Corrections()) == 0 || a.Quarantined || a.Pinned {
		return time.Time{} // a release or an unpin starts it again
	}
	was := *a.Correction
	against, err := c.input(ctx, a)
	if errors.Is(err, ErrContractUnknown) {
		return c.failed(ctx, k, &was, agent.Failed(agent.ErrUnsupportedCapability, err.Error()))
	}
	if err != nil {
		return c.failed(ctx, k, &was, agent.Failed(agent.ErrResourceExhausted, err.Error()))
	}
	if done := heldAlready(ctx, against); done != nil {
		return c.unlessAway(c.set(ctx, k, done), time.Time{})
	}
	if err := c.set(ctx, k, &agent.Correction{State: agent.CorrectionRunning,
		Attempts: was.Attempts + 1}); err != nil {
		return c.unlessAway(err, time.Time{})
	}
	made, failure := c.write(ctx, against)
	switch {
	case failure == nil:
		return c.adopt(k, made, actor, &was)
	case ctx.Err() != nil: // interrupted: resumed after the restart
		_ = c.set(c.Env.Within(), k, &agent.Correction{State: agent.CorrectionQueued, Attempts: was.Attempts})
		return time.Time{}
	}
	return c.failed(ctx, k, &was, *failure)
}

// alone waits until no other replica corrects the method, then excludes them until release is called. It does nothing
// if the store is not shared.
func (c *Corrector) alone(ctx context.Context, k turns.Method) (release func(), err error) {
	if !c.Env.Shared {
		return func() {}, nil
	}
	lease, err := c.Env.Store.Lease(ctx, "correction:"+k.Role+"\n"+k.Method,
		store.LeaseOptions{TTL: retryAfter, Wait: true})
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

// input returns what the correction must hold: the judged input with the contract of its program, on behalf of the
// judged call's owner. Prompts, masks and dry runs read it as that of a call, but no call takes place.
func (c *Corrector) input(ctx context.Context, a *agent.Artifact) (*proof.Against, error) {
	v := a.Corrections()[0]
	judged, err := c.Env.Store.Session(ctx, v.SessionID)
	if err != nil {
		return nil, err
	}
	g := a.Judged(&v)
	in := &call.Call{Env: c.Env, Policy: c.Policy(), Rules: c.Rules(), Session: agent.Session{ID: v.SessionID,
		Role: a.Role, Owner: judged.Owner}, Speaker: agent.SpeakerUser, Owner: judged.Owner, Role: a.Role,
		Method: a.MethodName, Args: v.Args, Kwargs: v.Kwargs, Asked: g.Asked, Started: c.Env.Now()}
	in.InitRoot(c.Env.CallTimeout)
	if g.CallersContract && g.Asked == nil && judged.Role == a.Role {
		in.Asked = judged.Contract // programs of earlier versions did not store the contract
	}
	s := &proof.Against{Selection: call.Selection{Call: in, Artifact: a, Decision: selection.Decision{
		Decision: agent.DecideForge, Reason: selection.ReasonCorrection, Generation: g}}, Nester: c.Nester}
	if s.Terms, err = in.ResolveTerms(ctx); err == nil && g.CallersContract &&
		(!s.Terms.Own || s.Terms.Checked != g.CheckedFingerprint) {
		err = ErrContractUnknown
	}
	return s, err
}

// heldAlready returns the final state of a correction that needs no model: the judged answer came from an earlier
// program, and the current one holds every example. It returns nil if a correction is needed.
func heldAlready(ctx context.Context, s *proof.Against) *agent.Correction {
	g := s.Decision.Generation
	// The judged answer came from this very program.
	if s.Artifact.Doubted(g.ID) {
		return nil
	}
	if broken := proof.Examples(ctx, proof.New(*g, nil), s); broken != nil {
		return nil
	}
	if s.Policy.ApprovalRequired && !g.Approved || s.Policy.NewReach == agent.ReachAsk && s.Artifact.AwaitsReach(g) {
		return &agent.Correction{State: agent.CorrectionAwaitingApproval, Generation: &g.ID,
			ChangedAnswers: len(g.ChangedAnswers)}
	}
	return &agent.Correction{State: agent.CorrectionNone}
}

// written is a corrected program with its proof.
type written struct {
	*forge.Candidate
	proof proof.Verdict
}

// write asks a model to correct the current program and proves the result. It returns a proved candidate or the
// failure.
func (c *Corrector) write(ctx context.Context, s *proof.Against) (*written, *agent.Outcome) {
	var ledger forge.Ledger
	ledger.Open(s.Policy)
	against := *s
	against.MayChange = true
	q := request(s)
	for {
		ledger.Enter(&q)
		got := c.Forges.Forge(ctx, q)
		ledger.Add(s.Call, &got)
		ledger.Leave() // no other call shares the flight, and the next request may have the same key
		cand := got.Candidate
		if cand == nil {
			return nil, got.Failure
		}
		verdict := proof.Prove(ctx, cand.Candidate, &against)
		broken := verdict.Broken
		// A candidate with wider reach waits for approval anyway, so only other candidates are checked for unapproved
		// hosts.
		if broken == nil && cand.Beyond.Load() == nil {
			broken = namesUnapproved(&s.Selection, &cand.Generation)
		}
		if broken == nil {
			ledger.RepairEnded(s.Call, true)
			cand.Generation.ForgeUsage = ledger.Usage
			return &written{cand, verdict}, nil
		}
		ledger.Note(s.Call, broken)
		c.reject(ctx, s.Call, cand, broken)
		if broken.Class != agent.ClassIntrinsic || !ledger.Spend(broken, q.Basis) {
			return nil, &broken.Outcome
		}
		q.Basis = forge.Failing{Code: cand.Generation.Code, Checksum: cand.Generation.CodeChecksum,
			Class: string(broken.Class), Reason: broken.Outcome.ErrorType, Attempt: *broken}
	}
}

// request returns the request to repair the program that gave a wrong answer, or for a new one if the policy switches
// repairs off.
func request(s *proof.Against) forge.Request {
	g := s.Decision.Generation
	message := "A person judged an answer of this program to be wrong. Correct the program; the evidence says what was answered and what is right."
	q := forge.Request{For: &s.Selection, Kind: provider.KindRepair, Trigger: Trigger, Predecessor: g, Alone: true,
		Basis: forge.Failing{Code: g.Code, Checksum: g.CodeChecksum, Class: "wrong_answer", Reason: "wrong_answer",
			Message: prompt.Public(message)}}
	if !s.Policy.RepairEnabled {
		q.Kind = provider.KindForge
	}
	return q
}

// namesUnapproved returns a denied attempt if the program of a correction names a host that its method may not reach,
// or nil otherwise. A correction is adopted without a run; adopting such a program would take a working one out of
// service.
func namesUnapproved(c *call.Selection, g *agent.Generation) *judge.Judged {
	guard := proof.GuardFor(c)
	if guard == nil {
		return nil
	}
	lacks := guard.Manifest.Lacks(agent.Effects{Hosts: g.NamedHosts()})
	if len(lacks.Hosts) == 0 {
		return nil
	}
	j := &judge.Judged{Attempt: attempt.Attempt{ID: c.ID + ".f", Program: g}, Stage: attempt.StageProof}
	j.Unapproved(guard.Deny("reach "+strings.Join(lacks.Hosts, ", "), lacks))
	return j
}

// reject records why a candidate was discarded, as evidence for the next attempt.
func (c *Corrector) reject(ctx context.Context, in *call.Call, cand *forge.Candidate, broken *judge.Judged) {
	now := c.Env.Now()
	r := cand.Rejected(*broken)
	_ = c.change(ctx, agent.ArtifactChange{Role: in.Role, MethodName: in.Method, At: now,
		Rejected: r.Kept(in, now)}, nil)
}

// adopt makes the candidate the current generation, unless a person changed the examples or the artifact
// since the proof. It returns when to try again; zero means never.
func (c *Corrector) adopt(k turns.Method, t *written, actor string,
	was *agent.Correction) time.Time {
	unlock := c.Adoption.Lock(k)
	defer unlock()
	ctx := c.Env.Within()
	now, err := c.Env.Store.Artifact(ctx, k.Role, k.Method)
	if err != nil {
		return c.unlessAway(err, time.Time{})
	}
	cand, proved := t.Candidate, &t.proof
	wrong := now.Corrections()
	other := len(wrong) == 0 || now.Judged(&wrong[0]).ID != cand.Predecessor.ID
	if other || now.Quarantined || now.Pinned || proof.ExamplesDigest(now) != proved.Examples ||
		proved.Unseen(cand.Predecessor, now) {
		_ = c.set(ctx, k, &agent.Correction{State: agent.CorrectionQueued, Attempts: was.Attempts})
		return c.Env.Now() // prove again on the current state: a person's operation takes precedence
	}
	g := cand.Generation
	g.ID, g.ParentID = now.NextGenerationID(), &cand.Predecessor.ID
	g.Fixtures, g.ChangedAnswers, g.Beyond = proved.Fixtures(), proved.Changed, cand.Beyond.Load()
	done := Adopted(&agent.Correction{Attempts: was.Attempts + 1}, &g, c.Policy())
	entry := agent.AuditEntry{ID: ids.New("aud"), Timestamp: agent.FormatTime(c.Env.Now()), Actor: actor,
		Action: "artifact.correct", Target: k.Role + "." + k.Method,
		Reason: "a person called an answer wrong"}
	entry.Undo = "POST /v1/maintenance/audit/" + entry.ID + "/undo"
	if err := c.change(ctx, agent.ArtifactChange{Role: k.Role, MethodName: k.Method, At: c.Env.Now(), Generation: &g,
		Correction: done}, &entry); err != nil {
		return c.unlessAway(err, time.Time{})
	}
	c.Forges.ClearMethod(k)
	return time.Time{}
}

// Adopted returns a correction's state after the generation was adopted. was may be nil.
func Adopted(was *agent.Correction, g *agent.Generation, p *agent.Policy) *agent.Correction {
	next := &agent.Correction{State: agent.CorrectionAdopted, Generation: &g.ID, ChangedAnswers: len(g.ChangedAnswers),
		Attempts: 1}
	if was != nil {
		next.Attempts = max(1, was.Attempts)
	}
	if p.ApprovalRequired || g.Beyond != nil {
		next.State = agent.CorrectionAwaitingApproval
	}
	return next
}

// failed records a failed attempt and returns when to try again. An outage of the provider or a cap proves
// nothing about the method, so it does not count as an attempt.
func (c *Corrector) failed(ctx context.Context, k turns.Method, was *agent.Correction,
	failure agent.Outcome) time.Time {
	next := c.Env.Now().Add(max(time.Second, forge.DelayOf(was.Attempts, c.Policy().Backoff)))
	state := Failed(was, failure, next)
	if forge.ModelOut(&failure) {
		state.Attempts = was.Attempts
	}
	if state.Attempts >= Most {
		state.State, state.NextTryAt, next = agent.CorrectionFailed, nil, time.Time{}
	}
	return c.unlessAway(c.set(ctx, k, state), next)
}

// unlessAway returns next, unless it is zero because the store failed with err. Then it returns a time for another
// attempt: the correction is still pending in the store, and nothing else would resume it. If the method is gone, next
// is returned as it is.
func (c *Corrector) unlessAway(err error, next time.Time) time.Time {
	if err == nil || !next.IsZero() || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrGone) {
		return next
	}
	return c.Env.Now().Add(retryAfter)
}

// Failed returns a correction's state after one more failed attempt.
func Failed(was *agent.Correction, o agent.Outcome, next time.Time) *agent.Correction {
	message := agent.Clip(o.ErrorType+": "+o.ErrorMessage, 400)
	if raw, _ := o.Metadata[agent.RawMessageKey].(string); raw != "" { // callers get less detail than this
		message = agent.Clip(o.ErrorType+": "+raw, 400)
	}
	c := &agent.Correction{State: agent.CorrectionBackingOff, Attempts: 1, LastError: &message, NextTryAt: &next}
	if was.Pending() {
		c.Attempts = was.Attempts + 1
	}
	return c
}

// set records the correction's state in the artifact.
func (c *Corrector) set(ctx context.Context, k turns.Method, state *agent.Correction) error {
	return c.change(ctx, agent.ArtifactChange{Role: k.Role, MethodName: k.Method, At: c.Env.Now(),
		Correction: state}, nil)
}

// change applies a change to an artifact outside of any call and logs a failure. It retries on conflicts, and does
// nothing if the artifact is gone. An audit entry, if there is one, receives the artifact's state before and after.
func (c *Corrector) change(ctx context.Context, change agent.ArtifactChange, entry *agent.AuditEntry) error {
	for {
		a, err := c.Env.Store.Artifact(ctx, change.Role, change.MethodName)
		if err == nil && entry != nil {
			entry.Before, entry.After = agent.Encoded(a.Standing()), agent.Encoded(a.Apply(change).Standing())
		}
		if err == nil {
			_, err = c.Env.Store.ChangeArtifact(ctx, a.Revision, change, entry)
		}
		if errors.Is(err, store.ErrConflict) {
			continue // a conflict is usual: calls count on the artifact all the time
		}
		if err == nil || errors.Is(err, store.ErrNotFound) {
			return nil
		}
		c.Env.Logger.Warn().Err(err).Str("role", change.Role).Str("method",
			change.MethodName).Msg("a correction could not be recorded")
		return err
	}
}
