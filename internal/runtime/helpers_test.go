package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// The test binary stands in for the real one as the runner.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg {
		os.Exit(worker.Main())
	}
	code := m.Run()
	runtimetest.CloseCompiler()
	os.Exit(code)
}

// patchPolicy applies a JSON merge patch to the policy.
func patchPolicy(t *testing.T, r *Runtime, patch string) {
	t.Helper()
	_, err := r.ChangePolicy(t.Context(), func(now agent.Policy) (agent.Policy, *agent.AuditEntry, error) {
		after, err := jsonpatch.MergePatch(agent.Encoded(now), []byte(patch))
		if err != nil {
			return now, nil, err
		}
		p, err := agent.DecodePolicy(after)
		return p, &agent.AuditEntry{ID: ids.New("aud"), Action: "policy.change"}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// newRuntime starts a runtime over a memory store, real runners and the scripted model.
func newRuntime(t *testing.T, programs map[string][]string) (*Runtime, *runtimetest.Model) {
	t.Helper()
	return newRuntimeWith(t, programs, func(*env.Options) {})
}

// newRuntimeWith is newRuntime with changed options.
func newRuntimeWith(t *testing.T, programs map[string][]string, change func(*env.Options)) (*Runtime,
	*runtimetest.Model) {
	t.Helper()
	return startRuntime(t, runtimetest.CompilingPool(t), programs, change)
}

// scripted starts a runtime whose programs are Go functions: no process is started.
func scripted(t *testing.T, box *runtimetest.Box, programs map[string][]string,
	change func(*env.Options)) (*Runtime, *runtimetest.Model) {
	t.Helper()
	return startRuntime(t, box, programs, change)
}

func startRuntime(t *testing.T, box sandbox.Sandbox, programs map[string][]string,
	change func(*env.Options)) (*Runtime, *runtimetest.Model) {
	t.Helper()
	model := &runtimetest.Model{Programs: programs}
	o := env.DefaultOptions()
	o.Store, o.Sandbox, o.Provider = storetest.NewMemory(time.Now), box, model
	o.Metrics = telemetry.New(telemetry.NewRegistry(), telemetry.Build{})
	o.AllowImport = func(string) bool { return true }
	if change != nil {
		change(&o)
	}
	r, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Stop(context.Background())
		model.CheckHistoryGuidance(t)
	})
	return r, model
}

func run(body string, imports ...string) string {
	lines := ""
	for _, path := range imports {
		lines += fmt.Sprintf("\t%q\n", path)
	}
	return "package tool\n\nimport (\n" + lines +
		"\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n"
}

// conversation makes a session and returns a function that calls its methods.
func conversation(t *testing.T, r *Runtime, q sessions.Request) (string, func(method string, args ...any) Reply) {
	t.Helper()
	s, err := r.CreateSession(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID, func(method string, args ...any) Reply {
		t.Helper()
		raw := []json.RawMessage{}
		for _, a := range args {
			b, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			raw = append(raw, b)
		}
		res, err := r.Call(t.Context(), CallRequest{SessionID: s.ID, Method: method, Args: raw})
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		var reply Reply
		if err := json.Unmarshal(res.Body, &reply); err != nil {
			t.Fatal(err)
		}
		return reply
	}
}

// wantReply compares what a call came to with "value source" or "error_type source".
func wantReply(t *testing.T, what string, got Reply, want string) {
	t.Helper()
	text := string(got.Outcome.Value)
	if !got.Outcome.OK() {
		text = got.Outcome.ErrorType
	}
	if text += " " + got.Program.Source; text != want {
		t.Errorf("%s: got %s (%s, %+v), want %s", what, text, got.Outcome.ErrorMessage, got.Program.Selection, want)
	}
}

// operate applies a change to the method's artifact, as an operation of a person does.
func operate(t *testing.T, r *Runtime, change agent.ArtifactChange) *agent.Artifact {
	t.Helper()
	a, err := r.env.Store.Artifact(t.Context(), change.Role, change.MethodName)
	revision := int64(0)
	if err == nil {
		revision = a.Revision
	}
	change.At = r.env.Now()
	a, err = r.env.Store.ChangeArtifact(t.Context(), revision, change,
		&agent.AuditEntry{ID: ids.New("aud"), Timestamp: agent.FormatTime(change.At), Action: "artifact.test"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func example(id, value string, args ...string) agent.Example {
	x := agent.Example{ID: id, State: agent.ExampleActive, Expect: agent.Expectation{Value: json.RawMessage(value)},
		Kwargs: json.RawMessage("{}")}
	for _, a := range args {
		x.Args = append(x.Args, json.RawMessage(a))
	}
	return x
}

func lastUser(q provider.Request) string { return q.Messages[len(q.Messages)-1].Content }
