// Package verify shows what stored programs do without making a call: which program would answer, what it answers to an
// input, and whether it holds examples and earlier answers. Nothing is kept or counted.
package verify

import (
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/policies"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A Verifier verifies the programs of a namespace. Its methods may be called concurrently.
type Verifier struct {
	env      *env.Env
	policies *policies.Policies
	nester   attempt.Nester
}

// New returns a Verifier. nester answers the calls that programs make in dry runs.
func New(e *env.Env, p *policies.Policies, nester attempt.Nester) *Verifier {
	return &Verifier{e, p, nester}
}

// A DryRun describes a program to run without consequences, and its input.
type DryRun struct {
	Role, Method string
	Owner        string
	Artifact     *agent.Artifact   // nil if there is none yet
	Generation   *agent.Generation // program to run
	Args         []json.RawMessage
	Kwargs       json.RawMessage
	Context      json.RawMessage // an object, or empty
	NoFetch      bool
}

// input returns the input of the dry run, with what the program is held to. No call takes place.
func (v *Verifier) input(p DryRun) *proof.Against {
	in := &call.Call{Env: v.env, Policy: v.policies.PolicyInForce(), Rules: v.policies.Rules(),
		Session: agent.Session{Role: p.Role}, Speaker: agent.SpeakerUser, Owner: p.Owner, Role: p.Role,
		Method: p.Method, Args: p.Args, Kwargs: p.Kwargs, Started: v.env.Now()}
	in.InitRoot(v.env.CallTimeout)
	return &proof.Against{Selection: call.Selection{Call: in, Artifact: p.Artifact}, Nester: v.nester}
}

// RunDry runs the program live on the given input. Nothing is kept or counted.
func (v *Verifier) RunDry(ctx context.Context, p DryRun) agent.Outcome {
	s := v.input(p)
	a, ok := s.DryRun(ctx, p.Generation, proof.Dry{ID: s.ID, CallID: s.ID, Args: s.Args, Kwargs: s.Kwargs,
		Context: p.Context, Denied: p.NoFetch})
	if !ok {
		return agent.Failed(agent.ErrInvalidInput, "context must be an object")
	}
	return s.Named(a.Outcome)
}

// CheckExamples runs the program on the artifact's active examples. With NoFetch, a live example counts as skipped if
// the program tries to fetch.
func (v *Verifier) CheckExamples(ctx context.Context, p DryRun) []proof.ExampleResult {
	s := v.input(p)
	out := []proof.ExampleResult{}
	for _, x := range p.Artifact.ActiveExamples() {
		out = append(out, s.RunExample(ctx, p.Generation, &x, proof.Conditions{Denied: p.NoFetch}))
	}
	return out
}

// ChangedFixture is an earlier answer that a program would give differently.
type ChangedFixture struct {
	CallID string          `json:"call_id"`
	Was    json.RawMessage `json:"was"`
	Now    json.RawMessage `json:"now"` // null after an error
	Error  string          `json:"error_type,omitempty"`
}

// CompareFixtures runs the program on the fixtures of the current generation. Fixtures that prove nothing are left out.
func (v *Verifier) CompareFixtures(ctx context.Context, p DryRun) (same int, changed []ChangedFixture) {
	s, changed := v.input(p), []ChangedFixture{}
	if p.Artifact == nil || p.Artifact.Current() == nil {
		return 0, changed
	}
	for i, f := range p.Artifact.Current().Fixtures {
		broken, reproduced := s.Rerun(ctx, p.Generation, f, i)
		switch {
		case reproduced:
			same++
		case broken != nil && broken.Class == agent.ClassIntrinsic:
			ch := proof.ChangedAnswer(f, broken)
			changed = append(changed, ChangedFixture{ch.CallID, ch.Was, ch.Now, ch.ErrorType})
		}
	}
	return same, changed
}

// RecordedHost returns a host for replaying a call of the session. It answers reads and changes nothing.
func (v *Verifier) RecordedHost(s agent.Session) sandbox.Host {
	return &attempt.Host{For: &call.Call{Env: v.env, Policy: v.policies.PolicyInForce(), Rules: v.policies.Rules(),
		Session: s},
		Recorded: true}
}
