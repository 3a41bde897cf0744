package daemon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func simulate(d *rig.Daemon, patch object, calls int) (s operator.Simulation) {
	d.T.Helper()
	d.Do(http.StatusOK, http.MethodPost, "/v1/policy/simulate", object{"patch": patch, "calls": calls}).Into(d.T, &s)
	return s
}

// A simulation predicts what the calls then meet, and what each call's explanation says of the same switch. It
// writes nothing.
func TestASimulationIsExact(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "r.m": {rig.ProgMayPanic, rig.ProgFixes},
		"own.of_it": {rig.ProgEcho}})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	calculator, r := d.Session("calculator"), d.Session("r")
	ids := []string{}
	note := func(reply rig.Reply) { ids = append(ids, reply.CallID) }
	note(d.Call(calculator, "add", 1, 2))
	note(d.Call(calculator, "add", 2, 3))
	note(d.Call(r, "m", 1))
	note(d.Call(r, "m", "bad")) // repaired
	note(d.Call(r, "m", 2))
	note(d.Call(r, "ask", "dispatched"))
	note(d.Call(calculator, "value=", 5))

	d.Restart() // everything is in files
	before := d.Stored()
	for name, patch := range map[string]object{
		"artifact_read_enabled": {"artifact_read_enabled": false},
		"artifact_read_roles":   {"artifact_read_roles": []string{"another-role"}},
		"force_generation":      {"force_generation": true},
		"repair_enabled":        {"repair_enabled": false}, "approval_required": {"approval_required": true},
		"promotion.enforce": {"promotion": object{"enforce": true}},
		"correction":        {"correction": "next_call"},
	} {
		s := simulate(d, patch, 500)
		if s.LookedAt != len(ids) || s.NotKnown != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		changed := map[string]operator.ChangedCall{}
		for _, c := range s.Changed {
			changed[c.CallID] = c
		}
		for _, id := range ids {
			var x why.Explanation
			d.Do(http.StatusOK, http.MethodGet, "/v1/calls/"+id+"/why", nil).Into(t, &x)
			c, has := changed[id]
			for _, f := range x.Counterfactuals {
				if f.Switch == name && (f.Changes != has || has && (c.WouldBe.Decision != f.Decision ||
					c.WouldBe.Generation != f.Generation || c.Was.Decision != x.Selection.Decision)) {
					t.Errorf("%s, %s: the simulation says %+v, the explanation %+v", name, id, c, f)
				}
			}
		}
	}
	if s := simulate(d, object{"approval_required": true}, 2); s.LookedAt != 2 || len(s.Changed) > 2 {
		t.Errorf("two calls: %+v", s)
	}
	after := d.Stored()
	for name, was := range before {
		if string(was) != string(after[name]) {
			t.Errorf("a simulation changed %s", name)
		}
	}

	for name, patch := range map[string]object{"refuse": {"approval_required": true},
		"forge": {"force_generation": true}} {
		warm := d.Call(calculator, "add", 20, 3)
		s := simulate(d, patch, 1)
		if len(s.Changed) != 1 || s.Changed[0].CallID != warm.CallID || s.Changed[0].WouldBe.Decision != name {
			t.Fatalf("%s: %+v", name, s)
		}
		d.Policy(patch)
		met := d.LogOf(d.Call(calculator, "add", 20, 3))["selection"].(map[string]any)
		if want := s.Changed[0].WouldBe; met["decision"] != want.Decision || met["reason"] != want.Reason {
			t.Errorf("the simulation said %+v, the call met %v", want, met)
		}
		d.Policy(object{"approval_required": false, "force_generation": false})
	}
	rig.CheckProblem(t, "an unknown member", d.Do(http.StatusUnprocessableEntity, http.MethodPost,
		"/v1/policy/simulate", object{"patch": object{"repare_enabled": true}}))
	out, errs, code := d.Client("policy", "simulate", "approval_required=true", "--calls", "3")
	if code != 0 || !strings.Contains(out, "of 3 calls would be decided otherwise") ||
		!strings.Contains(out, "refuse") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
}

// Where a change has programs wait for a person's approval, the simulation says which, durable ones first; those that
// are approved before it is made go on answering.
func TestASimulationSaysWhatWouldWait(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	s := d.Session("r")
	for _, method := range []string{"young", "old", "seen"} {
		d.Call(s, method, 1)
	}
	d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("r", "old")+"/promote", object{})
	d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("r", "seen")+"/approve", object{})
	on := object{"approval_required": true}
	w := simulate(d, on, 1).Approval
	if w == nil || w.Waiting != 2 || w.Durable != 1 || len(w.Programs) != 2 ||
		w.Programs[0] != (operator.WaitingMethod{Role: "r", Method: "old", Generation: "gen-1",
			LifecycleState: "durable"}) || w.Programs[1].Method != "young" {
		t.Fatalf("what would wait: %+v", w)
	}
	if w := simulate(d, object{"repair_enabled": false}, 1).Approval; w != nil {
		t.Errorf("another switch: %+v", w)
	}
	d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("r", "old")+"/approve",
		object{"generation": w.Programs[0].Generation})
	if w := simulate(d, on, 1).Approval; w.Waiting != 1 || w.Durable != 0 {
		t.Errorf("after the approval: %+v", w)
	}
	d.Policy(on)
	d.WantError(d.Call(s, "young", 2), "denied")
	for _, method := range []string{"old", "seen"} {
		if got := d.Call(s, method, 2); !got.Outcome.OK {
			t.Errorf("%s: %+v", method, got.Outcome)
		}
	}
	if w := simulate(d, on, 1).Approval; w != nil {
		t.Errorf("it is on already: %+v", w)
	}
}
