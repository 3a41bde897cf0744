package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Tool returns a registry entry.
func (r *Runtime) Tool(ctx context.Context, role string) (agent.Tool, error) {
	return r.store.Tool(ctx, role)
}

// ListTools returns registry entries by role, after the role after.
func (r *Runtime) ListTools(ctx context.Context, after string, limit int) ([]agent.Tool, error) {
	return r.store.ListTools(ctx, after, limit)
}

// PutTool registers the role or changes its contract; created tells which. revision is store.AnyRevision or the one
// that the tool must have (0: none yet).
func (r *Runtime) PutTool(ctx context.Context, role string, k agent.Contract, methods map[string]agent.Contract, revision int64, actor string) (t agent.Tool, created bool, err error) {
	if err := agent.CheckName("role", role); err != nil {
		return agent.Tool{}, false, err
	}
	if err := checkContract(&k, ""); err != nil {
		return agent.Tool{}, false, err
	}
	if len(methods) > MaxMethodContracts {
		return agent.Tool{}, false, &InputError{Code: "too_large", Pointer: "/methods", Detail: fmt.Sprintf("%d methods, at most %d have a contract of their own", len(methods), MaxMethodContracts)}
	}
	for name, m := range methods {
		if err := agent.CheckName("method", name); err != nil {
			return agent.Tool{}, false, err
		}
		if err := checkContract(&m, "/methods/"+name); err != nil {
			return agent.Tool{}, false, err
		}
	}
	was, err := r.store.Tool(ctx, role)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return agent.Tool{}, false, err
	}
	created = err != nil
	entry := r.audit(actor, actToolPut, role, "")
	next := agent.Tool{Role: role, Contract: k, Methods: methods, CreatedAt: r.o.Now().UTC()}
	if !created {
		next.CreatedAt, next.LastUsedAt, next.UsageCount = was.CreatedAt, was.LastUsedAt, was.UsageCount
		entry.Before = encoded(was)
	}
	entry.After = encoded(next)
	t, err = r.store.PutTool(ctx, next, revision, &entry)
	return t, created, err
}

// Artifact returns the artifact, store.ErrNotFound when there is none.
func (r *Runtime) Artifact(ctx context.Context, role, method string) (*agent.Artifact, error) {
	return r.store.Artifact(ctx, role, method)
}

// ListArtifacts returns the role's artifacts by method.
func (r *Runtime) ListArtifacts(ctx context.Context, role string) ([]*agent.Artifact, error) {
	return r.store.ListArtifacts(ctx, role)
}

// ArchiveTool moves the tool and all its artifacts out of the way; Restore brings them back.
func (r *Runtime) ArchiveTool(ctx context.Context, role, reason, actor string) error {
	entry := r.audit(actor, actToolArchive, role, reason)
	var err error
	if entry.After, err = r.present(ctx, role, nil); err != nil {
		return err
	}
	return r.store.Archive(ctx, []store.Target{{Role: role}}, entry)
}

// ArchiveArtifact moves one artifact out of the way.
func (r *Runtime) ArchiveArtifact(ctx context.Context, role, method, reason, actor string) error {
	entry := r.audit(actor, actArchive, role+"."+method, reason)
	targets := []store.Target{{Role: role, Method: method}}
	entry.After = encoded(targets)
	return r.store.Archive(ctx, targets, entry)
}

// Operation is an operator's act on an artifact. Action is quarantine, release, regenerate, promote, rollback, pin, unpin
// or approve.
type Operation struct {
	Action, Reason, Actor string
	Generation            string // rollback: to which; "" is the current one's parent
	ResetMetrics          bool   // promote
}

// Operate performs the act and returns the artifact after it. An *InputError says what about it makes no sense.
func (r *Runtime) Operate(ctx context.Context, role, method string, o Operation) (*agent.Artifact, error) {
	unlock := r.adoption.lock(methodKey{role, method}) // no candidate slips in between the look and the act
	defer unlock()
	entry := r.audit(o.Actor, onArtifacts+o.Action, role+"."+method, o.Reason)
	return r.change(ctx, role, method, &entry, func(a *agent.Artifact) (agent.ArtifactChange, error) {
		if a == nil {
			return agent.ArtifactChange{}, store.ErrNotFound
		}
		return o.on(a)
	})
}

// regenerateRequested stands for the reason that an operator did not give.
const regenerateRequested = "requested"

// on is the change that the act makes of the artifact.
func (o *Operation) on(a *agent.Artifact) (change agent.ArtifactChange, err error) {
	yes, no := true, false
	switch o.Action {
	case "quarantine":
		change.Quarantine = &o.Reason
	case "release":
		change.Release = true
	case "regenerate":
		reason := orElse(o.Reason, regenerateRequested)
		change.ForceRegenerate, change.ResetRepairs = &reason, true
	case "promote":
		change.State, change.ResetMetrics = agent.StateDurable, o.ResetMetrics
	case "rollback":
		change.Current, err = rollbackTarget(a, o.Generation)
	case "pin":
		change.Pin = &yes
	case "unpin":
		change.Pin = &no
	case "approve":
		change.Approve = &yes
	default:
		err = &InputError{Code: "invalid_operation", Detail: "unknown operation " + o.Action,
			Hint: "quarantine, release, regenerate, promote, rollback, pin, unpin or approve"}
	}
	return change, err
}

// toolPath is the path of an artifact in the REST interface, for people who undo something.
func toolPath(role, method string) string {
	return "/v1/tools/" + url.PathEscape(role) + "/methods/" + url.PathEscape(method)
}

func rollbackTarget(a *agent.Artifact, want string) (string, error) {
	refuse := func(detail string) (string, error) {
		return "", &InputError{Code: "invalid_generation", Pointer: "/generation", Detail: detail, Hint: "GET .../generations lists the kept ones"}
	}
	if want != "" {
		if a.Find(want) == nil {
			return refuse(fmt.Sprintf("%s is not kept", want))
		}
		return want, nil
	}
	if cur := a.Current(); cur != nil && cur.ParentID != nil && a.Find(*cur.ParentID) != nil {
		return *cur.ParentID, nil
	}
	return refuse("there is no earlier generation to go back to")
}

// PutProgram makes an operator's own code the current generation, through the gate. An *InputError with the code
// invalid_code carries the gate's words.
func (r *Runtime) PutProgram(ctx context.Context, role, method, source, reason, actor string) (*agent.Artifact, error) {
	if err := errors.Join(agent.CheckName("role", role), agent.CheckName("method", method)); err != nil {
		return nil, err
	}
	checksum := agent.Checksum(source)
	facts, refused := r.box.Load(ctx, sandbox.Program{Source: source, Checksum: checksum}, actor)
	if refused != nil {
		return nil, &InputError{Code: agent.ErrInvalidCode, Pointer: "/code", Detail: refused.Message, Hint: refused.Hint, Meta: map[string]any{"error_type": refused.Type}}
	}
	unlock := r.adoption.lock(methodKey{role, method})
	defer unlock()
	var ofRole, ofMethod agent.Contract
	if t, err := r.store.Tool(ctx, role); err == nil {
		ofRole, ofMethod = t.Contract, t.Methods[method]
	}
	k := r.compiled.resolve(&ofRole, &ofMethod, nil, nil)
	g := agent.Generation{Trigger: "operator:" + orElse(reason, "put"), Code: source, CodeChecksum: checksum, Dependencies: facts.Imports,
		ContractFingerprint: k.Fingerprint, CheckedFingerprint: k.Checked, PromptVersion: prompt.Version, RuntimeVersion: agent.ABI, Interpreter: facts.Engine,
		Model: modelOperator, CreatedAt: r.o.Now(), Facts: encodeFacts(facts), Cacheable: true, CacheabilityReason: cacheStable}
	entry := r.audit(actor, actPut, role+"."+method, reason)
	return r.change(ctx, role, method, &entry, func(a *agent.Artifact) (agent.ArtifactChange, error) {
		if a == nil {
			a = &agent.Artifact{} // the first program of that name
		}
		yes, next := true, g
		next.ID = a.NextGenerationID()
		return agent.ArtifactChange{Generation: &next, Approve: &yes}, nil
	})
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Stale lists the tools and artifacts that nobody used for that many days.
func (r *Runtime) Stale(ctx context.Context, days int) ([]store.Target, error) {
	return r.store.Stale(ctx, r.o.Now().Add(-time.Duration(days)*24*time.Hour))
}

// PruneRequest asks for tools and artifacts unused for StaleDays to be archived or deleted (Mode).
type PruneRequest struct {
	StaleDays     int
	Mode          string // archive or delete
	DryRun        bool
	Actor, Reason string
}

// PruneReport says what was, or with DryRun would be, pruned.
type PruneReport struct {
	DryRun  bool           `json:"dry_run"`
	Mode    string         `json:"mode"`
	Targets []store.Target `json:"targets"`
}

// Prune removes what is stale. A dry run changes nothing.
func (r *Runtime) Prune(ctx context.Context, q PruneRequest) (PruneReport, error) {
	report := PruneReport{DryRun: q.DryRun, Mode: q.Mode}
	if q.Mode != "archive" && q.Mode != "delete" {
		return report, &InputError{Code: "invalid_mode", Pointer: "/mode", Detail: "must be archive or delete", Hint: "archive can be undone"}
	}
	targets, err := r.Stale(ctx, q.StaleDays)
	if err != nil || q.DryRun || len(targets) == 0 {
		report.Targets = targets
		return report, err
	}
	report.Targets = targets
	entry := r.audit(q.Actor, actPrune, fmt.Sprintf("%d targets", len(targets)), q.Reason)
	entry.After = encoded(targets)
	if q.Mode == "delete" {
		entry.Undo = irreversible + "deleted for good"
		return report, r.store.Remove(ctx, targets, entry)
	}
	return report, r.store.Archive(ctx, targets, entry)
}

// Restore brings back what was archived, byte for byte.
func (r *Runtime) Restore(ctx context.Context, t store.Target, actor, reason string) error {
	name := t.Role
	if t.Method != "" {
		name += "." + t.Method
	}
	entry := r.audit(actor, actRestore, name, reason)
	var err error
	if entry.Before, err = r.present(ctx, t.Role, nil); err != nil {
		return err
	}
	entry.After = encoded([]store.Target{t})
	return r.store.Restore(ctx, []store.Target{t}, entry)
}

// Audit returns the audit trail, newest first, before the id before.
func (r *Runtime) Audit(ctx context.Context, before string, limit int) ([]agent.AuditEntry, error) {
	return r.store.Audit(ctx, before, limit)
}
