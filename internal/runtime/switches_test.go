package runtime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// Programs that the gate refuses count against the promotion of the program that they would replace. Those that a
// switch requested do not: they replace nothing.
func TestRefusedProgramsUnderSwitches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, on string
		want     int64
	}{
		{"forge at every call", `{"force_generation": true}`, 0}, {"reads off", `{"artifact_read_enabled": false}`, 0},
		{"not the canary", `{"artifact_read_roles": ["other"]}`, 0},
		{"a person asked for it", `{"repair_enabled": true}`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			box := &runtimetest.Box{Programs: scriptedPrograms(),
				Refused: map[string]*sandbox.Failure{"refused": {Type: agent.ErrDependencyPolicy, Message: "os"}}}
			r, _ := scripted(t, box, map[string][]string{"r.m": {"fickle", "refused"}}, nil)
			_, call := conversation(t, r, sessions.Request{Role: "r"})
			call("m", "fine")
			reason := "nicer"
			operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", ForceRegenerate: &reason})
			patchPolicy(t, r, tt.on)
			call("m", "fine")
			a := artifactOf(t, r, "r", "m")
			if a.Scorecard.GuardrailExhausted != tt.want || len(a.Rejections) != 1 {
				t.Errorf("%d exhausted guardrails on the scorecard, want %d; %d rejections",
					a.Scorecard.GuardrailExhausted, tt.want, len(a.Rejections))
			}
		})
	}
}

// A world is a daemon whose model writes two families of programs: before a switch and after it. Each program is a
// function of the call's single argument, derived from a seed.
type world struct {
	*Runtime
	model *runtimetest.Model
	call  func(method string, args ...any) Reply
}

// answersOf makes a program: a value, an error of its own or a failure for each of the inputs.
func answersOf(dice *rand.Rand) runtimetest.Run {
	kinds := []runtimetest.Run{runtimetest.Returns("1"), runtimetest.Returns("2"),
		runtimetest.Returns(`{"status":"low_utility"}`), runtimetest.Returns("null"),
		runtimetest.Raises("not_found", "there is none"), runtimetest.Raises(agent.ErrInvalidInput, "not like this"),
		runtimetest.Breaks(agent.ErrExecution, "boom")}
	program := kinds[dice.IntN(len(kinds))]
	for _, input := range []string{"a", "b"} {
		program = on(input, kinds[dice.IntN(len(kinds))], program)
	}
	return program
}

// newWorld starts a daemon. It makes calls before the switch only if the method is to have a past.
func newWorld(t *testing.T, seed uint64) world {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 1))
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{}, Refused: map[string]*sandbox.Failure{}}
	var before, after []string
	for i := range 24 {
		name := fmt.Sprintf("program %d of before", i)
		if i >= 12 {
			name = fmt.Sprintf("program %d of after", i)
		}
		box.Programs[name] = answersOf(dice)
		if dice.IntN(8) == 0 {
			box.Refused[name] = &sandbox.Failure{Type: agent.ErrDependencyPolicy, Message: "os"}
		}
		if i < 12 {
			before = append(before, name)
		} else {
			after = append(after, name)
		}
	}
	r, model := scripted(t, box, map[string][]string{"r.m": before, "after": after}, nil)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	return world{r, model, call}
}

// after makes the model write the programs of after the switch, in a new session.
func (w *world) after(t *testing.T) {
	t.Helper()
	w.model.Programs["r.m"] = w.model.Programs["after"]
	_, w.call = conversation(t, w.Runtime, sessions.Request{Role: "r"})
}

// Under any switch, a call ends as in a daemon that never had the stored program: the program is not run, not shown to
// the model, and not used to prove the one that answers.
func TestSwitchedOffIsAsNeverStored(t *testing.T) {
	t.Parallel()
	switches := []string{`{"artifact_read_enabled": false}`, `{"force_generation": true}`,
		`{"artifact_read_roles": ["other"]}`, "quarantine"}
	rounds := 400
	if testing.Short() {
		rounds = 60 // each is like the others
	}
	kept, unkept := int64(0), int64(0)
	for seed := range uint64(rounds) {
		dice := rand.New(rand.NewPCG(seed, 2))
		old, never := newWorld(t, seed), newWorld(t, seed)
		inputs := []string{"a", "b", "c"}
		for range 1 + dice.IntN(8) {
			old.call("m", inputs[dice.IntN(len(inputs))])
			if yes := true; dice.IntN(10) == 0 && standing(old.Runtime) != nil {
				operate(t, old.Runtime, agent.ArtifactChange{Role: "r", MethodName: "m", Pin: &yes})
			}
		}
		off, repairs := switches[dice.IntN(len(switches))], dice.IntN(2) == 0
		if off == "quarantine" {
			if standing(old.Runtime) == nil {
				continue // nothing that it could hold
			}
			reason := "wrong"
			operate(t, old.Runtime, agent.ArtifactChange{Role: "r", MethodName: "m", Quarantine: &reason})
			patchPolicy(t, never.Runtime, `{"force_generation": true}`)
		} else {
			patchPolicy(t, old.Runtime, off)
			patchPolicy(t, never.Runtime, off)
		}
		for _, w := range []*world{&old, &never} {
			patchPolicy(t, w.Runtime, fmt.Sprintf(`{"repair_enabled": %v}`, repairs))
			w.after(t)
		}
		before, asked := standing(old.Runtime), len(old.model.Requests())
		for range 3 {
			input := inputs[dice.IntN(len(inputs))]
			got, want := old.call("m", input), never.call("m", input)
			if got.Outcome.Status != want.Outcome.Status || string(got.Outcome.Value) != string(want.Outcome.Value) ||
				got.Outcome.ErrorType != want.Outcome.ErrorType {
				t.Errorf("seed %d, %s, repairs %v: m(%s) ends in %+v, in a daemon without a past in %+v", seed, off,
					repairs, input, got.Outcome, want.Outcome)
			}
		}
		requests := old.model.Requests()[asked:]
		if len(requests) != len(never.model.Requests()) {
			t.Errorf("seed %d, %s: %d requests, %d without a past", seed, off, len(requests),
				len(never.model.Requests()))
		}
		for _, q := range requests {
			for _, m := range q.Messages {
				if strings.Contains(m.Content, "of before") {
					t.Errorf("seed %d, %s: the model is shown a program that is switched off:\n%s", seed, off,
						m.Content)
				}
			}
		}
		if before == nil {
			continue
		}
		now := artifactOf(t, old.Runtime, "r", "m")
		if now.CurrentID != before.CurrentID || now.Current().Window != before.Current().Window {
			t.Errorf("seed %d, %s: %s became %s, %s became %s", seed, off, before.CurrentID, now.CurrentID,
				before.Current().Window, now.Current().Window)
		}
		if kept += now.SuccessCount - before.SuccessCount; off == "quarantine" &&
			now.SuccessCount != before.SuccessCount {
			t.Errorf("seed %d: calls under quarantine count: %d, %d", seed, before.SuccessCount, now.SuccessCount)
		}
		unkept += now.UnkeptCalls
	}
	if kept == 0 || unkept == 0 {
		t.Errorf("%d answers of programs that were kept, %d of others: the histories show nothing", kept, unkept)
	}
}

// standing is the artifact, or nil where there is no program.
func standing(r *Runtime) *agent.Artifact {
	a, err := r.env.Store.Artifact(context.Background(), "r", "m")
	if err != nil || a.Current() == nil {
		return nil
	}
	return a
}

// Answers of programs that are not kept are marked in the log and counted at the method.
func TestUnkeptCallsAreCounted(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{Programs: scriptedPrograms()},
		map[string][]string{"r.m": {"one", "two", "one"}}, nil)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	wantReply(t, "stored", call("m", "x"), "1 generated")
	patchPolicy(t, r, `{"artifact_read_enabled": false}`)
	other := call("m", "x")
	wantReply(t, "another answer", other, "2 generated")
	same := call("m", "x")
	wantReply(t, "the same answer", same, "1 generated")
	a := artifactOf(t, r, "r", "m")
	if !logOf(t, r, other.CallID).ProgramUnkept || logOf(t, r, same.CallID).ProgramUnkept || a.UnkeptCalls != 1 ||
		len(a.Generations) != 2 || !a.Generations[0].Aside {
		t.Errorf("got %d unkept calls and %d generations", a.UnkeptCalls, len(a.Generations))
	}
}
