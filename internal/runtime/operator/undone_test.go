package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// An audit entry shows whether it was undone, by an operation of any replica. It offers an undo exactly if the undo
// would succeed.
func TestUndoOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory(time.Now)
		a, b := newReplica(t, s), newReplica(t, s)
		judged := a.call(t)
		did := map[string]string{} // id of the audit entry of each operation
		do := func(what string, f func(ctx context.Context) error) {
			t.Helper()
			var left store.Receipt
			if err := f(store.WithReceipt(t.Context(), &left)); err != nil {
				t.Fatal(what, err)
			}
			did[what] = left.AuditID()
		}
		operate := func(action string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := a.op.Operate(ctx, "r", "m", operator.Operation{Action: action, Actor: "ann"})
				return err
			}
		}
		patch := func(p string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := a.op.PatchPolicy(ctx, json.RawMessage(p), "ann")
				return err
			}
		}
		judge := func(verdict string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, _, err := a.op.Judge(ctx, judged, operator.Judgement{Verdict: verdict, Actor: "ann",
					MayOperate: true})
				return err
			}
		}
		undo := func(what string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := a.op.Undo(ctx, operator.UndoRequest{AuditID: did[what], Actor: "ann"})
				return err
			}
		}
		do("pin", operate("pin"))
		do("approve", operate("approve"))
		do("switch", patch(`{"drift_after": 3}`))
		do("switch again", patch(`{"drift_after": 4}`))
		do("other switch", patch(`{"repair_enabled": false}`))
		do("right", judge("right"))
		do("wrong", judge("wrong"))
		do("spend", patch(`{"spend": {"day_tokens": 5}}`))
		do("tool", func(ctx context.Context) error {
			_, _, err := a.op.PutTool(ctx, operator.ToolPut{Role: "shop", Contract: agent.Contract{Purpose: "sells"},
				Actor: "ann", Revision: store.AnyRevision})
			return err
		})
		do("archive", func(ctx context.Context) error { return a.op.ArchiveTool(ctx, "shop", "", "ann") })
		do("restore", func(ctx context.Context) error {
			_, err := a.op.Restore(ctx, store.Target{Role: "shop"}, "ann", "")
			return err
		})
		do("archive again", func(ctx context.Context) error { return a.op.ArchiveTool(ctx, "shop", "", "ann") })
		do("other tool", func(ctx context.Context) error {
			_, _, err := a.op.PutTool(ctx, operator.ToolPut{Role: "cafe", Contract: agent.Contract{Purpose: "cooks"},
				Actor: "ann", Revision: store.AnyRevision})
			return err
		})
		do("other archive", func(ctx context.Context) error { return a.op.ArchiveTool(ctx, "cafe", "", "ann") })
		do("undo of other archive", undo("other archive"))
		do("redo of other archive", undo("undo of other archive"))
		do("undo of pin", undo("pin"))
		do("undo of other switch", undo("other switch"))
		do("redo of other switch", undo("undo of other switch"))

		view := func(what string) operator.AuditView {
			t.Helper()
			v, err := b.op.AuditEntry(t.Context(), did[what])
			if err != nil {
				t.Fatal(what, err)
			}
			return v
		}
		for what, by := range map[string]string{"pin": "undo of pin", "undo of other switch": "redo of other switch",
			"other switch": "", "approve": "", "undo of pin": ""} {
			if v := view(what); v.UndoneBy != did[by] {
				t.Errorf("%s: undone by %q, want %q", what, v.UndoneBy, did[by])
			}
		}
		for what, scope := range map[string]string{"approve": "operate", "spend": "admin", "wrong": "call",
			"archive again": "operate", "redo of other archive": "operate", "switch again": "operate"} {
			if v := view(what); v.UndoRequest == nil || v.UndoRequest.Scopes[0] != scope {
				t.Errorf("%s: the undo %+v is offered, refused is %q; want one with the scope %s", what, v.UndoRequest,
					v.UndoRefused, scope)
			}
		}
		for _, what := range []string{"switch", "right", "tool", "archive", "restore", "other archive"} {
			if v := view(what); v.UndoRequest != nil || v.UndoRefused == "" {
				t.Errorf("%s: the undo %+v is offered, refused is %q; want it refused", what, v.UndoRequest,
					v.UndoRefused)
			}
		}
		for what, id := range did {
			v := view(what)
			if v.UndoRequest != nil && v.UndoRequest.Path != "/v1/maintenance/audit/"+id+"/undo" {
				continue // undone by another request
			}
			_, err := b.op.Undo(t.Context(), operator.UndoRequest{AuditID: id, Actor: "bob", Admin: true})
			if offered := v.UndoRequest != nil; offered != (err == nil) {
				t.Errorf("%s: an undo is offered: %v; undone it ends in %v", what, offered, err)
			}
		}
	})
}

// auditReads records how much of the audit trail is read.
type auditReads struct {
	store.Store
	most []int // limit of entries for each read; -1: none
}

type countedTrail struct {
	store.Namespace
	of *auditReads
}

func (a *auditReads) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := a.Store.Namespace(name)
	return &countedTrail{n, a}, err
}

func (c *countedTrail) Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error) {
	most := -1
	if q.Scan != nil {
		most = q.Scan.Most
	}
	c.of.most = append(c.of.most, most)
	return c.Namespace.Audit(ctx, q)
}

// A page of audit entries shows what was undone without reading the whole trail again.
func TestUndoneIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &auditReads{Store: storetest.NewMemory(time.Now)}
		r := newReplica(t, s)
		trail, err := s.Store.Namespace(agent.DefaultNamespace)
		if err != nil {
			t.Fatal(err)
		}
		add := func(id, undoes string) {
			t.Helper()
			if err := trail.AppendAudit(t.Context(), agent.AuditEntry{ID: id, Action: "policy.change",
				Undoes: undoes}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 300 {
			add(fmt.Sprint("aud_", i), "")
		}
		add("aud_undo", "aud_7")
		undoneBy := func(id string) string {
			t.Helper()
			views, err := r.op.AuditViews(t.Context(), []agent.AuditEntry{{ID: id}})
			if err != nil {
				t.Fatal(err)
			}
			return views[0].UndoneBy
		}
		s.most = nil
		if got := undoneBy("aud_7"); got != "aud_undo" {
			t.Errorf("aud_7 is undone by %q", got)
		}
		add("aud_next", "")
		add("aud_redo", "aud_undo")
		if got := undoneBy("aud_7"); got != "" {
			t.Errorf("after the redo aud_7 is undone by %q", got)
		}
		if got := undoneBy("aud_8"); got != "" {
			t.Errorf("aud_8 is undone by %q", got)
		}
		if fmt.Sprint(s.most) != "[-1 2]" {
			t.Errorf("the reads looked at %v entries, want all once, then the two that came", s.most)
		}
	})
}

// A person's undo also gives the method a fresh start: the next call need not wait because of earlier failures.
func TestUndoEndsDelay(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"r.m": {run(`if call.Arg(0, "v") == "bad" { panic("boom") }; return 1, nil`)}})
	if _, err := g.op.PatchPolicy(t.Context(),
		json.RawMessage(`{"degraded": {"min_failures": 20}, "fixtures_enabled": false}`), "ann"); err != nil {
		t.Fatal(err)
	}
	call := g.conversation(t, "r")
	asks := func(what string, want bool) {
		t.Helper()
		before := g.model.Count("r.m", "")
		call("m", "bad")
		if asked := g.model.Count("r.m", "") > before; asked != want {
			t.Errorf("%s: the model was asked: %v, want %v", what, asked, want)
		}
	}
	call("m", "fine")
	asks("the first failure", true)
	asks("after a failure", false)
	var left store.Receipt
	if _, err := g.op.Operate(store.WithReceipt(t.Context(), &left), "r", "m",
		operator.Operation{Action: "approve", Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	asks("after an operation", true)
	asks("after a failure since", false)
	if _, err := g.op.Undo(t.Context(), operator.UndoRequest{AuditID: left.AuditID(), Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	asks("after its undo", true)
}
