package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// tools checks registration by calls, use counts, and the pages of the list.
func tools(t *testing.T, r *rig) {
	r.session("sess_1")
	c := r.call("sess_1")
	k := agent.Contract{Purpose: "finds"}
	other := agent.Contract{Purpose: "other"}
	c.Tools = []store.ToolChange{
		{Role: "finder", At: r.clock.now(), Register: &k, IfAbsent: true, Owner: "ann"},
		{Role: "finder", At: r.clock.now(), Register: &other, IfAbsent: true, Owner: "ben"},
		{Role: "nobody", At: r.clock.now(), Used: 1},
	}
	r.commit(c)
	r.clock.advance(time.Hour)
	c = r.call("sess_1")
	c.Tools = []store.ToolChange{{Role: "finder", At: r.clock.now(), Used: 2}}
	r.commit(c)
	r.everyWay(func() {
		got, err := r.s.Tool(r.ctx, "finder")
		r.ok(err)
		if got.Purpose != "finds" || got.Owner != "ann" || got.UsageCount != 2 || got.Revision != 3 ||
			!got.LastUsedAt.Equal(r.clock.now()) || !got.CreatedAt.Equal(r.clock.now().Add(-time.Hour)) {
			t.Errorf("got %+v", got)
		}
		if _, err := r.s.Tool(r.ctx, "nobody"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a tool that nobody registered: got %v, want ErrNotFound", err)
		}
		list, err := r.s.ListTools(r.ctx, "", 10)
		r.ok(err)
		if len(list) != 1 || list[0].Role != "finder" {
			t.Errorf("got %+v", list)
		}
		if list, err := r.s.ListTools(r.ctx, "finder", 10); err != nil || len(list) != 0 {
			t.Errorf("after finder: got %+v, %v", list, err)
		}
	})
	_, err := r.s.PutTool(r.ctx, agent.Tool{Role: "adder"}, 0, nil)
	r.ok(err)
	r.everyWay(func() {
		for after, want := range map[string]string{"": "adder", "adder": "finder"} {
			if list, err := r.s.ListTools(r.ctx, after, 1); err != nil || len(list) != 1 || list[0].Role != want {
				t.Errorf("one after %q: got %+v, %v, want %s", after, list, err, want)
			}
		}
	})
}

// toolRevisions checks that a change needs the current revision, and does not change the usage.
func toolRevisions(t *testing.T, r *rig) {
	one, err := r.s.PutTool(r.ctx, agent.Tool{Role: "finder", Contract: agent.Contract{Purpose: "one"}}, 0,
		&agent.AuditEntry{ID: "audit_1"})
	r.ok(err)
	if one.Revision != 1 || one.CreatedAt.IsZero() {
		t.Errorf("got %+v", one)
	}
	if _, err := r.s.PutTool(r.ctx, agent.Tool{Role: "finder"}, 0, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("new again: got %v, want ErrConflict", err)
	}
	two, err := r.s.PutTool(r.ctx, agent.Tool{Role: "finder", Contract: agent.Contract{Purpose: "two"}, UsageCount: 99},
		one.Revision, nil)
	r.ok(err)
	if two.UsageCount != 0 || !two.CreatedAt.Equal(one.CreatedAt) {
		t.Errorf("usage is the store's: got %+v", two)
	}
	_, err = r.s.PutTool(r.ctx, agent.Tool{Role: "finder", Contract: agent.Contract{Purpose: "three"},
		Methods: map[string]agent.Contract{"find": {Purpose: "m"}}}, store.AnyRevision, nil)
	r.ok(err)
	r.everyWay(func() {
		got, err := r.s.Tool(r.ctx, "finder")
		r.ok(err)
		if got.Purpose != "three" || got.Revision != 3 || got.Methods["find"].Purpose != "m" {
			t.Errorf("got %+v", got)
		}
	})
}

// ranking checks the order of tools: those in use by success rate and recency, then stale ones.
func ranking(t *testing.T, r *rig) {
	r.session("sess_1")
	use := func(role string, ok, bad int, state string) {
		_, err := r.s.PutTool(r.ctx, agent.Tool{Role: role, CreatedAt: r.clock.now(), LastUsedAt: r.clock.now()}, 0,
			nil)
		r.ok(err)
		r.forge(role, "m", "package tool // "+role)
		for i := range ok + bad {
			c := r.call("sess_1")
			class := agent.ClassOK
			if i >= ok {
				class = agent.ClassIntrinsic
			}
			c.Artifacts = []agent.ArtifactChange{{Role: role, MethodName: "m", At: r.clock.now(), Result: class,
				State: state}}
			c.Tools = []store.ToolChange{{Role: role, At: r.clock.now(), Used: 1}}
			r.commit(c)
		}
	}
	use("old but durable", 4, 0, agent.StateDurable)
	use("stale", 4, 0, agent.StateCandidate)
	r.clock.advance(40 * 24 * time.Hour)
	use("fresh", 4, 0, agent.StateCandidate)
	use("shaky", 2, 2, agent.StateCandidate)
	use("broken", 0, 4, agent.StateDegraded)
	r.clock.advance(24 * time.Hour)
	r.forge("unregistered", "m", "x")
	r.everyWay(func() {
		got, err := r.s.RankTools(r.ctx, r.clock.now(), 10)
		r.ok(err)
		names := []string{}
		for _, x := range got {
			names = append(names, x.Tool.Role)
		}
		if fmt.Sprintf("%q", names) != `["fresh" "shaky" "broken" "old but durable" "stale"]` {
			t.Errorf("got %q", names)
		}
		if x := got[0]; x.Score < 0.966 || x.Score > 0.968 || fmt.Sprint(x.Methods) != "[m]" ||
			x.State != agent.StateCandidate {
			t.Errorf("got %+v, want score exp(-1/30)", x)
		}
		if got, err := r.s.RankTools(r.ctx, r.clock.now(),
			2); err != nil || len(got) != 2 || got[0].Tool.Role != "fresh" {
			t.Errorf("limited to 2: got %+v, %v", got, err)
		}
	})
	c := r.call("sess_1") // its use makes a stale tool fresh again
	c.Artifacts = []agent.ArtifactChange{{Role: "old but durable", MethodName: "m", At: r.clock.now(),
		Result: agent.ClassOK}}
	c.Tools = []store.ToolChange{{Role: "old but durable", At: r.clock.now(), Used: 1}}
	r.commit(c)
	r.everyWay(func() {
		if got, err := r.s.RankTools(r.ctx, r.clock.now(),
			1); err != nil || len(got) != 1 || got[0].Tool.Role != "old but durable" {
			t.Errorf("after its use: got %+v, %v", got, err)
		}
	})
}
