package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A ToolPut is what the registry shall say of a role.
type ToolPut struct {
	Role     string
	Contract agent.Contract            // of all its methods
	Methods  map[string]agent.Contract // of single ones, beside it
	Revision int64                     // that the tool must have; store.AnyRevision, or 0 for none yet
	Actor    string
}

// A ChangedTool is a tool after a person's change of what it is for.
type ChangedTool struct {
	agent.Tool
	BroughtBack
}

// PutTool registers the role or changes its contract; created says which.
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

// putTool puts the tool in the place of the one that it reads: store.ErrConflict where that is another one by then.
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

// replaceTool puts a person's next version in the place of a tool, which has the revision 0 where there was none. What programs proposed stays as far as it is stricter.
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
	t.Proposals = nil // the inbox shows them
	return t, err
}

// mostRaces is how often a change that comes too late is made anew.
const mostRaces = 1000

// untilUnraced makes a change that wants no revision again as long as others come between what it looked at and what it writes.
func untilUnraced(revision int64, change func() error) (err error) {
	for range mostRaces {
		if err = change(); revision != store.AnyRevision || !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}

// A ProgramPut is a program of an operator's own.
type ProgramPut struct {
	Role, Method  string
	Source        string
	Declaration   agent.Declaration // of what it takes and returns; empty: inferred
	Revision      int64             // that the artifact must have; store.AnyRevision, or 0 for none yet
	Reason, Actor string            // Reason may be empty
}

// PutProgram makes an operator's own code the current generation, through the gate. An *agent.InputError with the code
// invalid_code carries the gate's words; store.ErrConflict says that the artifact has another revision.
func (o *Operator) PutProgram(ctx context.Context, q ProgramPut) (*agent.Artifact, error) {
	role, method := q.Role, q.Method
	if err := agent.Names(&role, &method); err != nil {
		return nil, err
	}
	loaded, err := o.gated(ctx, q.Source, q.Declaration, q.Actor)
	if err != nil {
		return nil, err
	}
	unlock := o.calls.HoldAdoption(role, method)
	defer unlock()
	t, err := o.store.Tool(ctx, role)
	if err != nil {
		t = agent.Tool{} // not registered
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
			a = &agent.Artifact{} // the first program of that name
		}
		if !store.Matches(q.Revision, a.Revision) {
			return agent.ArtifactChange{}, store.ErrConflict
		}
		yes, next := true, g
		next.ID = a.NextGenerationID()
		return agent.ArtifactChange{Generation: &next, Approve: &yes}, nil
	})
}

// gated passes code through the gate and returns it as a generation of a person's.
func (o *Operator) gated(ctx context.Context, code string, d agent.Declaration,
	actor string) (*agent.Generation, error) {
	checksum := agent.Checksum(code)
	facts, refused := o.box.Load(ctx, sandbox.Program{Source: code, Checksum: checksum}, o.calls.Owner(actor))
	if refused != nil {
		return nil, &agent.InputError{Code: agent.ErrInvalidCode, Pointer: "/code", Detail: refused.Message,
			Hint: refused.Hint, Meta: map[string]any{"error_type": refused.Type}}
	}
	takes, err := runtime.Declared(d, facts)
	if err != nil {
		return nil, &agent.InputError{Code: "validation_failed", Pointer: "/parameters", Detail: err.Error(),
			Hint: "leave summary, parameters and returns out, and they are inferred from the program"}
	}
	return &agent.Generation{Code: code, Interface: takes, CodeChecksum: checksum, Dependencies: facts.Imports,
		PromptVersion: prompt.Version, RuntimeVersion: agent.ABI,
		Interpreter: facts.Engine, Model: runtime.ModelOperator, Owner: actor, CreatedAt: o.o.Now(),
		Facts: runtime.EncodeFacts(facts, d.Unread(takes)...), Cacheable: true,
		CacheabilityReason: runtime.CacheStable}, nil
}
