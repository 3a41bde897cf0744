package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// policy checks that the policy is stored with its revision, and that stale changes are rejected.
func policy(t *testing.T, r *rig) {
	p, _, err := r.s.Policy(r.ctx)
	r.ok(err)
	if !sameJSON(p, agent.DefaultPolicy()) {
		t.Errorf("got %+v, want the default", p)
	}
	p.RepairEnabled = false
	r.ok(r.s.SetPolicy(r.ctx, p, store.AnyRevision, &agent.AuditEntry{ID: "audit_1"}))
	r.everyWay(func() {
		got, revision, err := r.s.Policy(r.ctx)
		r.ok(err)
		if revision != 1 {
			t.Errorf("got revision %d, want 1", revision)
		}
		for _, stale := range []int64{0, 2} {
			if err := r.s.SetPolicy(r.ctx, agent.DefaultPolicy(), stale,
				&agent.AuditEntry{ID: "stale"}); !errors.Is(err, store.ErrConflict) {
				t.Errorf("a change of revision %d: got %v, want ErrConflict", stale, err)
			}
		}
		if !sameJSON(got, p) {
			t.Errorf("got %+v, want %+v", got, p)
		}
		if list, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 10}); err != nil || len(list) != 1 {
			t.Errorf("got audit %+v, %v", list, err)
		}
	})
}

// policyRaces checks that only one of several changes based on the same revision succeeds.
func policyRaces(t *testing.T, r *rig) {
	for round := range int64(5) {
		var made atomic.Int32
		var together sync.WaitGroup
		for i := range 8 {
			together.Go(func() {
				p := agent.DefaultPolicy()
				p.DelegationDepth = i + 1
				switch err := r.s.SetPolicy(r.ctx, p, round, &agent.AuditEntry{ID: fmt.Sprint("audit_", round, "_", i),
					Target: fmt.Sprint(p.DelegationDepth)}); {
				case err == nil:
					made.Add(1)
				case !errors.Is(err, store.ErrConflict):
					t.Error(err)
				}
			})
		}
		together.Wait()
		p, revision, err := r.s.Policy(r.ctx)
		r.ok(err)
		trail, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 100})
		r.ok(err)
		if made.Load() != 1 || revision != round+1 || len(trail) != int(round)+1 ||
			trail[0].Target != fmt.Sprint(p.DelegationDepth) {
			t.Errorf("round %d: %d changes were made, to revision %d with %d entries, the last of them %v", round,
				made.Load(), revision, len(trail), trail[0])
		}
	}
}

// audit checks that audit entries can be paged, newest first.
func audit(t *testing.T, r *rig) {
	for i := range 5 {
		r.ok(r.s.AppendAudit(r.ctx, agent.AuditEntry{ID: fmt.Sprint("audit_", i), Actor: "ann", Action: "test",
			Reason: strings.Repeat("x", i*1000)}))
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
