package runtime

import (
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

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

// selection returns the pseudo-call under which dry runs run.
func (r *Runtime) selection(p DryRun) *selected {
	c := r.newCall(CallRequest{Role: p.Role, Method: p.Method, Args: p.Args, Kwargs: p.Kwargs, Owner: p.Owner},
		agent.Session{Role: p.Role})
	return &selected{Against: proof.Against{Selection: call.Selection{Call: &c.Call, Artifact: p.Artifact},
		Nester: nester{r}},
		r: r}
}

// RunDry runs the program live on the given input. Nothing is kept or counted.
func (r *Runtime) RunDry(ctx context.Context, p DryRun) agent.Outcome {
	s := r.selection(p)
	a, ok := s.DryRun(ctx, p.Generation, proof.Dry{ID: s.ID, CallID: s.ID, Args: s.Args, Kwargs: s.Kwargs,
		Context: p.Context, Denied: p.NoFetch})
	if !ok {
		return agent.Failed(agent.ErrInvalidInput, "context must be an object")
	}
	return s.Named(a.Outcome)
}

// CheckExamples runs the program on the artifact's active examples. With NoFetch, a live example counts as skipped if
// the program tries to fetch.
func (r *Runtime) CheckExamples(ctx context.Context, p DryRun) []proof.ExampleResult {
	s := r.selection(p)
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
func (r *Runtime) CompareFixtures(ctx context.Context, p DryRun) (same int, changed []ChangedFixture) {
	s, changed := r.selection(p), []ChangedFixture{}
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
func (r *Runtime) RecordedHost(s agent.Session) sandbox.Host {
	return &attempt.Host{For: &call.Call{Env: r.env, Policy: r.PolicyInForce(), Rules: r.Rules(), Session: s},
		Recorded: true}
}
