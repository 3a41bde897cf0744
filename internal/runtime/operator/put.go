package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/programs"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A ToolPut is the desired registry entry of a role.
type ToolPut struct {
	Role     string
	Contract agent.Contract            // for all its methods
	Methods  map[string]agent.Contract // for single methods, in addition
	Revision int64                     // required current revision; store.AnyRevision, or 0 if it must not exist
	Actor    string
}

// A ChangedTool is a tool after a person's change of its contract.
type ChangedTool struct {
	agent.Tool
	BroughtBack
}

// PutTool registers the role or changes its contract; created reports which. Errors are *agent.InputError or
// *agent.NameError, or the store's: store.ErrConflict means another revision.
func (o *Operator) PutTool(ctx context.Context, q ToolPut) (t ChangedTool, created bool, err error) {
	if err := checkPut(&q); err != nil {
		return t, false, err
	}
	t.BroughtBack, err = o.bringingBack(ctx, []string{q.Role}, q.Actor, func() error {
		return untilUnraced(q.Revision, func() error {
			t.Tool, created, err = o.putTool(ctx, q)
			return err
		})
	})
	return t, created, err
}

// checkPut validates the request, and normalizes the role.
func checkPut(q *ToolPut) (err error) {
	if q.Role, err = agent.Name("role", q.Role); err != nil {
		return err
	}
	if err := contract.CheckTerms(&q.Contract, ""); err != nil {
		return err
	}
	if len(q.Methods) > contract.MaxMethods {
		return &agent.InputError{Code: "too_large", Pointer: "/methods",
			Detail: fmt.Sprintf("%d methods, at most %d have a contract of their own", len(q.Methods),
				contract.MaxMethods)}
	}
	for name, m := range q.Methods {
		if err := agent.CheckName("method", name); err != nil {
			return err
		}
		if err := contract.CheckTerms(&m, "/methods/"+name); err != nil {
			return err
		}
	}
	return nil
}

// putTool is one attempt. It returns store.ErrConflict if the tool changes between reading and writing.
func (o *Operator) putTool(ctx context.Context, q ToolPut) (t agent.Tool, created bool, err error) {
	was, err := o.store.Tool(ctx, q.Role)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return agent.Tool{}, false, err
	}
	created = err != nil
	if !store.Matches(q.Revision, was.Revision) {
		return agent.Tool{}, false, store.ErrConflict
	}
	entry := o.audit(q.Actor, opToolPut, q.Role, "")
	next := agent.Tool{Role: q.Role, Contract: q.Contract, Methods: q.Methods, Owner: q.Actor, ByPerson: true,
		CreatedAt: o.o.Now().UTC(), Proposals: was.Proposals}
	t, err = o.replaceTool(ctx, was, next, entry)
	return t, created, err
}

// replaceTool replaces a tool by a person's next version. was has revision 0 if there was no tool. Proposals of
// programs stay if they are still stricter.
func (o *Operator) replaceTool(ctx context.Context, was, next agent.Tool,
	entry agent.AuditEntry) (t agent.Tool, err error) {
	next.Proposals = contract.StillStricter(next.Proposals, next.Deliverable)
	var more growth
	store.ToolBytes(&next, more.add)
	if was.Revision > 0 {
		next.CreatedAt, next.LastUsedAt, next.UsageCount = was.CreatedAt, was.LastUsedAt, was.UsageCount
		entry.Before = auditedTool(was)
		store.ToolBytes(&was, more.drop)
	}
	if err := more.fits(ctx, o, entry.Actor); err != nil {
		return agent.Tool{}, err
	}
	if err := o.remember(ctx, &was, &next); err != nil {
		return agent.Tool{}, err
	}
	entry.After = auditedTool(next)
	t, err = o.store.PutTool(ctx, next, was.Revision, &entry)
	t.Proposals = nil // shown in the inbox
	return t, err
}

// mostRaces bounds the retries of a change that conflicts with others.
const mostRaces = 1000

// untilUnraced repeats a change that conflicts with others, if the client requires no particular revision.
func untilUnraced(revision int64, change func() error) (err error) {
	for range mostRaces {
		if err = change(); revision != store.AnyRevision || !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}

// A ProgramPut is a program that a person wrote.
type ProgramPut struct {
	Role, Method  string
	Source        string
	Declaration   agent.Declaration // what it takes and returns; empty means inferred
	Revision      int64             // required current revision; store.AnyRevision, or 0 if it must not exist
	Reason, Actor string            // Reason may be empty
}

// PutProgram passes a person's code through the gate and makes it the current generation. If the gate refuses it, the
// error is an *agent.InputError with the code invalid_code and the gate's message. store.ErrConflict means another
// revision.
func (o *Operator) PutProgram(ctx context.Context, q ProgramPut) (*agent.Artifact, error) {
	role, method := q.Role, q.Method
	if err := agent.Names(&role, &method); err != nil {
		return nil, err
	}
	// before the lock, since the gate may take a while
	loaded, err := o.gated(ctx, q.Source, q.Declaration, q.Actor)
	if err != nil {
		return nil, err
	}
	unlock := o.calls.HoldAdoption(role, method)
	defer unlock()
	t, err := o.store.Tool(ctx, role) // without one, there is no contract
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	ofMethod := t.Methods[method]
	k := o.contracts.Resolve(contract.Layers{Role: &t.Contract, ByProgram: !t.ByPerson, Method: &ofMethod})
	g := *loaded
	g.Trigger, g.ContractFingerprint, g.CheckedFingerprint = "operator:"+cmp.Or(o.mask(q.Reason), "put"), k.Fingerprint,
		k.Checked
	g.MadeFor = &k.Words.Made
	entry := o.audit(q.Actor, opPut, role+"."+method, q.Reason)
	return o.change(ctx, role, method, &entry, func(a *agent.Artifact) (agent.ArtifactChange, error) {
		if a == nil {
			a = &agent.Artifact{} // the first program of the method
		}
		if !store.Matches(q.Revision, a.Revision) {
			return agent.ArtifactChange{}, store.ErrConflict
		}
		yes, next := true, g
		next.ID = a.NextGenerationID()
		return agent.ArtifactChange{Generation: &next, Approve: &yes}, nil
	})
}

// gated passes code through the gate and returns it as a generation, without id.
func (o *Operator) gated(ctx context.Context, code string, d agent.Declaration,
	actor string) (*agent.Generation, error) {
	checksum := agent.Checksum(code)
	facts, refused := o.box.Load(ctx, sandbox.Program{Source: code, Checksum: checksum}, o.calls.Owner(actor))
	if refused != nil {
		return nil, &agent.InputError{Code: agent.ErrInvalidCode, Pointer: "/code", Detail: refused.Message,
			Hint: refused.Hint, Meta: map[string]any{"error_type": refused.Type}}
	}
	takes, err := programs.Declared(d, facts)
	if err != nil {
		return nil, &agent.InputError{Code: "validation_failed", Pointer: "/parameters", Detail: err.Error(),
			Hint: "leave out summary, parameters and returns to infer them from the program"}
	}
	return &agent.Generation{Code: code, Interface: takes, CodeChecksum: checksum, Dependencies: facts.Imports,
		PromptVersion: prompt.Version, RuntimeVersion: agent.ABI,
		Interpreter: facts.Engine, Model: programs.ModelOperator, Owner: actor, CreatedAt: o.o.Now(),
		Facts: programs.EncodeFacts(facts, d.Unread(takes)...), Cacheable: true,
		CacheabilityReason: forge.CacheStable}, nil
}

// room returns an error if the actor has no room for a change of the artifact.
func (o *Operator) room(ctx context.Context, actor string, before, after *agent.Artifact) error {
	var g growth
	store.ArtifactBytes(after, g.add)
	store.ArtifactBytes(before, g.drop)
	return g.fits(ctx, o, actor)
}

// growth is how much more each owner stores after an operation.
type growth struct{ store.Sums }

// add adds bytes that the owner will store.
func (g *growth) add(owner string, b store.Bytes) { g.Sums.Add(owner, b) }

// drop subtracts bytes that the owner stores now.
func (g *growth) drop(owner string, b store.Bytes) { g.Sums.Add(owner, store.Bytes{}.Minus(b)) }

// fits returns an error if the actor has no room for its own growth. What others lose does not count.
func (g *growth) fits(ctx context.Context, o *Operator, actor string) error {
	return o.calls.Room(ctx, actor, g.Of(actor))
}

// roomToRestore returns an error if the actor has no room at all. Only the store knows how much a restore needs.
func (o *Operator) roomToRestore(ctx context.Context, actor string) error {
	return o.calls.Room(ctx, actor, store.Bytes{Tools: 1, Examples: 1})
}
