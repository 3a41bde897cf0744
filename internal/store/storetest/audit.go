package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Chained checks that the namespace's audit trail is a valid chain that ends at its head. It returns the verifier that
// read the trail.
func Chained(t testing.TB, name agent.Namespace, n store.Namespace) *chain.Verifier {
	t.Helper()
	entries, err := n.Audit(context.Background(), store.AuditQuery{Limit: store.MaxTrail})
	if err != nil {
		t.Fatal(err)
	}
	v := chain.NewVerifier(name, nil)
	for _, e := range slices.Backward(entries) {
		line, err := chain.Line(&e)
		if err != nil {
			t.Fatal(err)
		}
		v.Add(line)
	}
	head, err := n.AuditHead(context.Background())
	if err != nil || head.Seq != v.Head.Seq || head.Seq > 0 && head != v.Head || len(v.Found) > 0 {
		t.Fatalf("%s: the trail's chain ends at %v, its head is %v, %v: %s", name, v.Head, head, err,
			strings.Join(v.Found, "; "))
	}
	return v
}

// auditChain checks that the entries of all operations, even of concurrent ones, form one chain in commit order, and
// that a rejected operation is not in it.
func auditChain(t *testing.T, r *rig) {
	for i := range 3 {
		r.ok(r.s.AppendAudit(r.ctx, agent.AuditEntry{ID: fmt.Sprint("audit_", i), Actor: "ann", Action: "test",
			Reason: "bad \xff UTF-8 <&>", After: json.RawMessage(`{ "a": "\u2028" }`)}))
	}
	var together sync.WaitGroup
	for i := range 20 {
		together.Go(func() {
			id := fmt.Sprint("tool_", i)
			var made, refused store.Receipt
			if _, err := r.s.PutTool(store.WithReceipt(r.ctx, &made), agent.Tool{Role: id}, 0,
				&agent.AuditEntry{ID: id, Actor: "bob"}); err != nil {
				t.Error(err)
			}
			if _, err := r.s.PutTool(store.WithReceipt(r.ctx, &refused), agent.Tool{Role: id}, 0,
				&agent.AuditEntry{ID: "refused"}); err == nil {
				t.Error("a tool was made twice")
			}
			if made.AuditID() != id || refused.AuditID() != "" {
				t.Errorf("the receipts say %q and %q, want %q and nothing", made.AuditID(), refused.AuditID(), id)
			}
		})
	}
	together.Wait()
	if v := Chained(t, agent.DefaultNamespace, r.s); v.Entries != 23 {
		t.Errorf("got %d linked entries, want 23", v.Entries)
	}
	head, err := r.s.AuditHead(r.ctx)
	r.ok(err)
	r.everyWay(func() {
		Chained(t, agent.DefaultNamespace, r.s)
		if now, err := r.s.AuditHead(r.ctx); err != nil || now != head {
			t.Errorf("got the head %v, %v, want %v", now, err, head)
		}
		byBob, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 7, Principal: "bob"})
		r.ok(err)
		if len(byBob) != 7 || byBob[6].Seq != 17 || byBob[0].Principal != "bob" || byBob[0].Actor != "bob" {
			t.Errorf("got %+v, want the newest seven of bob", byBob)
		}
		older, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 50, Principal: "bob", Before: byBob[6].ID})
		r.ok(err)
		first, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 1, Actions: []string{"test"}})
		r.ok(err)
		none, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 1, Actions: []string{"test"},
			Scan: &store.Scan{Most: 20}})
		r.ok(err)
		if len(older) != 13 || len(first) != 1 || first[0].ID != "audit_2" || len(none) != 0 {
			t.Errorf("got %d older ones of bob, %v with the action, %v among the newest 20", len(older), first, none)
		}
	})
	r.everyWay(func() { r.auditPages() })
	r.ok(r.s.AppendAudit(r.ctx, agent.AuditEntry{ID: "later", Undoes: "tool_1"}))
	undos, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 5, Undos: true})
	r.ok(err)
	if len(undos) != 1 || undos[0].ID != "later" {
		t.Errorf("got the undos %v, want the entry later", undos)
	}
	if v := Chained(t, agent.DefaultNamespace, r.s); v.Head.Seq != head.Seq+1 {
		t.Errorf("got the head %v after one more entry behind %v", v.Head, head)
	}
	at := [3]string{"2026-11-20T10:00:00.000Z", "2026-11-20T11:00:00.000Z", "2026-11-20T11:00:00.001Z"}
	for _, e := range []agent.AuditEntry{{Timestamp: at[0], Action: "late"}, {Timestamp: at[0], Action: "else"},
		{Timestamp: at[1], Action: "late"}, {Timestamp: at[2], Action: "else"}} {
		e.ID = fmt.Sprint(e.Action, " at ", e.Timestamp)
		r.ok(r.s.AppendAudit(r.ctx, e))
	}
	r.everyWay(func() {
		for i, want := range []int{2, 1, 0} {
			list, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 5, Since: at[i], Actions: []string{"late"}})
			if r.ok(err); len(list) != want {
				t.Errorf("got %v since %s, want %d entries", list, at[i], want)
			}
		}
	})
}

// auditPages reads the 20 entries of bob, and the 3 of ann below them, page by page. A page may end early at its scan
// limit; the next one continues there.
func (r *rig) auditPages() {
	for _, c := range []struct {
		principal   string
		limit, scan int
		want, pages int
	}{{"bob", 7, 100, 20, 3}, {"bob", 100, 4, 20, 6}, {"ann", 2, 5, 3, 6}, {"nobody", 5, 10, 0, 3},
		{"", 5, 100, 23, 5}} {
		var got []int64
		pages := 0
		for q := (store.AuditQuery{Principal: c.principal, Limit: c.limit}); pages == 0 || q.Before != ""; pages++ {
			q.Scan = &store.Scan{Most: c.scan}
			entries, err := r.s.Audit(r.ctx, q)
			r.ok(err)
			q.Before = q.Scan.Next
			for _, e := range entries {
				got = append(got, e.Seq)
			}
			if len(entries) == c.limit {
				q.Before = store.AuditCursor(&entries[c.limit-1])
			}
		}
		if len(got) != c.want || pages != c.pages || !slices.IsSortedFunc(got,
			func(a, b int64) int { return cmp.Compare(b, a) }) {
			r.Errorf("%s by %d of %d: got the entries %v on %d pages, want %d on %d", c.principal, c.limit, c.scan, got,
				pages, c.want, c.pages)
		}
	}
}

// auditErased checks that an entry's data about a session is erased with the session, and that the chain stays valid.
func auditErased(t *testing.T, r *rig) {
	for i, id := range []string{"sess_keep", "sess_gone"} {
		r.session(id)
		r.ok(r.s.AppendAudit(r.ctx, agent.AuditEntry{ID: fmt.Sprint("audit_", i), Timestamp: "2026-11-21T09:00:00.000Z",
			Actor: "ann", Action: "verdict.put", Target: "call_1", SessionID: id,
			After: json.RawMessage(`"secret of ` + id + `"`)}))
	}
	if r.h.Reopen != nil {
		r.use(r.h.Reopen(t, r.store, false)) // so the lines are in their file
	}
	r.ok(r.s.AppendAudit(r.ctx, agent.AuditEntry{ID: "audit_2", Action: "verdict.put", SessionID: "sess_gone",
		Reason: "pending"}))
	head, err := r.s.AuditHead(r.ctx)
	r.ok(err)
	r.ok(r.s.DeleteSession(r.ctx, "sess_gone", nil))
	r.everyWay(func() {
		if v := Chained(t, agent.DefaultNamespace, r.s); v.Erased != 2 || v.Head != head {
			t.Errorf("got %d erased ones and the head %v, want 2 and %v", v.Erased, v.Head, head)
		}
		got, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 10})
		r.ok(err)
		if len(got) != 3 || string(got[2].After) != `"secret of sess_keep"` {
			t.Fatalf("got %+v, want the entry of the other session as it was", got)
		}
		e := got[1]
		if !e.Erased || e.Actor != "ann" || e.Action != "verdict.put" || e.Timestamp == "" ||
			e.Target+e.SessionID+string(e.After)+e.Salt != "" {
			t.Errorf("got %+v, want who did what and when alone", e)
		}
	})
}
