package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// The model sees weak answers and questions asked again only of this method, the newest of each kind, up to a limit.
func TestRemarks(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	weak := func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
		status := map[string]string{`"beta"`: "partial", `"gamma"`: "no_results", `"delta"`: "fallback",
			`"epsilon"`: "empty"}[string(q.Args[0])]
		return runtimetest.Value(fmt.Sprintf(`{"status":%q,"token":"hunter2"}`, cmp.Or(status, "unparsed")))
	}
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"weak": weak, "one": runtimetest.Returns("1")}}
	r, model := scripted(t, box, map[string][]string{"r.m": {"weak", "one"}, "r.other": {"weak"}},
		func(o *env.Options) { o.Now = func() time.Time { return clock } })
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	call("other", "elsewhere in the world")
	call("m", "rain in Spain")
	call("m", "rain in Spain")
	for _, q := range []string{"alpha", "epsilon", "beta", "gamma", "delta"} {
		clock = clock.Add(time.Hour)
		call("m", q)
	}
	reason := "nicer"
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", ForceRegenerate: &reason})
	call("m", "zeta")
	text := lastUser(model.Requests()[2])
	if n := strings.Count(text, "a weak answer ("); n != forge.ShownRemarks {
		t.Errorf("%d weak answers are shown, want the newest of %d kinds:\n%s", n, forge.ShownRemarks, text)
	}
	for part, want := range map[string]bool{
		`args ["gamma"] were answered with {"status":"no_results","token":"[masked]"}`: true,
		`args ["beta"] were answered with`:                                             true,
		`args ["delta"] were answered with`:                                            true,
		// three kinds are newer
		`args ["alpha"] were answered with`:                                                   false,
		`args ["epsilon"] were answered with`:                                                 false,
		`after an answer to args ["rain in Spain"] the caller asked again: ["rain in Spain"]`: true,
		"elsewhere": false, "hunter2": false,
	} {
		if strings.Contains(text, part) != want {
			t.Errorf("the request has %q: %v\n%s", part, !want, text)
		}
	}
	if n := strings.Count(text, "asked again"); n != 1 {
		t.Errorf("%d questions asked again are shown", n)
	}
}

// The request shows why people asked for another program of this method, if they asked after the program was written.
func TestReasons(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1")}}
	r, model := scripted(t, box, map[string][]string{"r.m": {"one"}},
		func(o *env.Options) { o.Now = func() time.Time { return clock } })
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	audit := func(action, target, reason, after string) {
		t.Helper()
		e := agent.AuditEntry{ID: ids.New("aud"), Timestamp: agent.FormatTime(clock), Action: action, Target: target,
			Reason: reason, After: json.RawMessage(after)}
		if err := r.env.Store.AppendAudit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	audit("artifact.regenerate", "r.m", "before the program", "")
	clock = clock.Add(time.Hour)
	call("m")
	clock = clock.Add(time.Hour)
	audit("artifact.regenerate", "r.m", "the first of four", "")
	audit("artifact.regenerate", "r.m", "too slow", "")
	audit("artifact.regenerate", "r.n", "of another method", "")
	audit("artifact.quarantine", "r.m", "odd", "")
	audit("recommendation.apply", "rec_1", "as advised", `{"role":"r","method":"m"}`)
	audit("recommendation.apply", "rec_2", "as advised elsewhere", `{"role":"r","method":"n"}`)
	audit("artifact.regenerate", "r.m", "", "")
	audit("artifact.regenerate", "r.m", "too vague", "")
	reason := forge.RegenerateRequested
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", ForceRegenerate: &reason})
	call("m")
	text := lastUser(model.Requests()[1])
	for part, want := range map[string]bool{"too vague": true, "as advised\n": true, "too slow": true,
		"the first of four": false, "before the program": false,
		"of another method": false, "odd": false, "elsewhere": false, "<operator_reason>": false} {
		if strings.Contains(text, part) != want {
			t.Errorf("the request has %q: %v\n%s", part, !want, text)
		}
	}
}

// After a restart, the previous call is read from the session's records, but only within the time window of
// corrections.
func TestCorrectionAcrossRestart(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	window := time.Duration(agent.DefaultPolicy().UserCorrection.WindowSeconds) * time.Second
	for _, tt := range []struct {
		name   string
		answer string
		after  time.Duration
		args   string
		want   string
	}{
		{"a weak answer", `{"status":"empty"}`, window, "rain in Spain", evolve.SignalReask},
		{"too long ago", `{"status":"empty"}`, window + time.Second, "rain in Spain", ""},
		{"a good answer", `1`, window, "rain in Spain", ""},
		{"another question", `{"status":"empty"}`, window, "action movies", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			clock, held := began, storetest.NewMemory(time.Now)
			start := func() (*Runtime, *runtimetest.Model) {
				box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"p": runtimetest.Returns(tt.answer)}}
				return scripted(t, box, map[string][]string{"r.m": {"p"}},
					func(o *env.Options) { o.Store, o.Now = held, func() time.Time { return clock } })
			}
			r, _ := start()
			id, call := conversation(t, r, sessions.Request{Role: "r"})
			first := call("m", "rain in Spain")
			clock = clock.Add(tt.after)
			r, _ = start()
			res, err := r.Call(t.Context(), CallRequest{SessionID: id, Method: "m",
				Args: texts(string(agent.Encoded(tt.args)))})
			if err != nil {
				t.Fatal(err)
			}
			e := logOf(t, r, res.CallID)
			if e.UserCorrectionSignal != tt.want ||
				(e.UserCorrectionReferenceCallID == first.CallID) != (tt.want != "") {
				t.Errorf("the signal is %q of %q, want %q", e.UserCorrectionSignal, e.UserCorrectionReferenceCallID,
					tt.want)
			}
		})
	}
}
