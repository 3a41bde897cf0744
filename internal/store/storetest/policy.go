package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

func policy(t *testing.T, r *rig) {
	p, err := r.s.Policy(r.ctx)
	r.ok(err)
	if !sameJSON(p, agent.DefaultPolicy()) {
		t.Errorf("got %+v, want the default", p)
	}
	p.RepairEnabled = false
	r.ok(r.s.SetPolicy(r.ctx, p, &agent.AuditEntry{ID: "audit_1"}))
	r.everyWay(func() {
		got, err := r.s.Policy(r.ctx)
		r.ok(err)
		if !sameJSON(got, p) {
			t.Errorf("got %+v, want %+v", got, p)
		}
		if list, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 10}); err != nil || len(list) != 1 {
			t.Errorf("got audit %+v, %v", list, err)
		}
	})
}

func audit(t *testing.T, r *rig) {
	for i := range 5 {
		r.ok(r.s.AppendAudit(r.ctx, agent.AuditEntry{ID: fmt.Sprint("audit_", i), Actor: "ann", Action: "test", Reason: strings.Repeat("x", i*1000)}))
	}
	r.everyWay(func() {
		got, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 2})
		r.ok(err)
		if len(got) != 2 || got[0].ID != "audit_4" || got[1].ID != "audit_3" {
			t.Errorf("got %+v", got)
		}
		got, err = r.s.Audit(r.ctx, store.AuditQuery{Before: "audit_3", Limit: 10})
		r.ok(err)
		if len(got) != 3 || got[0].ID != "audit_2" || len(got[0].Reason) != 2000 {
			t.Errorf("got %+v", got)
		}
	})
}
