package daemon

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// modelOf is the model of GET /v1/system.
func modelOf(d *rig.Daemon) map[string]any {
	m, _ := d.Get("/v1/system")["model"].(map[string]any)
	return m
}

// A model that begins to fail is logged once, with the server's words and what to set, again when they change, and when
// it answers again; /v1/system and the metrics have the same.
func TestModelThatFails(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgAdd}})
	d := rig.Start(t, m).One()
	s := d.Session("r")
	warnings := func() int {
		return strings.Count(d.Output.String(),
			"the model fails; stored programs run without it")
	}
	refuse := func(status int, message string) {
		m.Answer("r", "new", openaitest.Reply{Status: status, Body: `{"error":{"message":"` + message + `"}}`})
		if o := d.Call(s, "new"); o.Outcome.OK || o.Outcome.ErrorType != "provider" {
			t.Errorf("got %+v", o.Outcome)
		}
	}
	d.WantValue(d.Call(s, "m", 1, 2), 3, "generated")
	if got := modelOf(d); got["last_error"] != nil || got["last_ok_at"] == nil || got["name"] != "scripted" ||
		got["base_url"] != m.URL || warnings() != 0 {
		t.Errorf("before: %v", got)
	}
	refuse(http.StatusUnauthorized, "no such key: "+rig.SecretKey)
	refuse(http.StatusUnauthorized, "no such key: "+rig.SecretKey)
	got, _ := modelOf(d)["last_error"].(map[string]any)
	message, _ := got["message"].(string)
	if warnings() != 1 || got["status"] != 401.0 || got["at"] == nil || !strings.Contains(message, "no such key") ||
		!strings.Contains(message, "OPENAI_API_KEY") {
		t.Errorf("%d warnings, %v", warnings(), got)
	}
	failed, ok := d.Metric(`recurgent_model_last_request_timestamp_seconds{outcome="failed"}`),
		d.Metric(`recurgent_model_last_request_timestamp_seconds{outcome="ok"}`)
	if failed < ok || ok == 0 {
		t.Errorf("metrics: failed %v, ok %v", failed, ok)
	}
	refuse(http.StatusPaymentRequired, "Insufficient Balance")
	if log := d.Output.String(); warnings() != 2 || !strings.Contains(log, "Insufficient Balance") ||
		strings.Contains(log, rig.SecretKey) {
		t.Errorf("%d warnings:\n%s", warnings(), log)
	}
	m.Answer("r", "other", openaitest.Code(rig.ProgAdd))
	d.WantValue(d.Call(s, "other", 2, 2), 4, "generated")
	if n := strings.Count(d.Output.String(), "the model answers again"); n != 1 || warnings() != 2 {
		t.Errorf("%d lines say that it answers again, %d warnings", n, warnings())
	}
	now := modelOf(d)
	if at(t, now["last_ok_at"]).Before(at(t, now["last_error"].(map[string]any)["at"])) {
		t.Errorf("after: %v", now)
	}
}

func at(t *testing.T, v any) time.Time {
	t.Helper()
	text, _ := v.(string)
	when, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// What nobody has called yet is looked at once, by the list of models, which costs nothing: a wrong name is logged.
func TestModelIsLookedAt(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.List("qwen3-coder:30b")
	d := rig.Start(t, m).One()
	rig.Until(t, "the look at the model", func() bool { return modelOf(d)["last_error"] != nil })
	if log := d.Output.String(); !strings.Contains(log, "the model fails") ||
		!strings.Contains(log, "qwen3-coder:30b") || m.Looks() != 1 || m.Count("", "") != 0 {
		t.Errorf("%d looks, %d requests:\n%s", m.Looks(), m.Count("", ""), log)
	}
}

// A check has the model write a program as calls do, at the cost of who asks; it is for those who operate.
func TestCheckOfModel(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd,
		openaitest.Reply{Status: 404,
			Body: `{"error":{"message":"model \"scripted\" not found, try pulling it first"}}`}}})
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		"eve token-of-eve-0001\ncal token-of-cal-0002 scopes=read,call,admin\n")).One()
	eve, cal := d.As("token-of-eve-0001"), d.As("token-of-cal-0002")
	check := func() (ok bool, steps string, reply map[string]any) {
		reply = eve.Do(http.StatusOK, http.MethodPost, "/v1/system/model/check", nil).Object(t)
		for _, s := range reply["steps"].([]any) {
			step := s.(map[string]any)
			steps += " " + step["name"].(string) + "=" + step["result"].(string)
		}
		return reply["ok"].(bool), steps, reply
	}
	ok, steps, reply := check()
	if !ok || steps != " reached=ok key=ok model=ok tools=ok limit=ok context=ok program=ok compiles=ok" ||
		reply["usage"].(map[string]any)["model_requests"] != 1.0 {
		t.Errorf("got %v", reply)
	}
	if r := m.Requests()[0]; r.Body["tools"] == nil || !strings.Contains(r.Text, "submit_program") {
		t.Error("the model is asked otherwise than by calls")
	}
	if ok, steps, reply = check(); ok ||
		steps != " reached=ok key=ok model=failed tools=unknown limit=unknown context=unknown program=unknown compiles=unknown" {
		t.Errorf("got %v", reply)
	}
	spent := eve.Get("/v1/usage?by=method")["data"].([]any)
	if len(spent) != 1 || spent[0].(map[string]any)["key"] != "model_check" {
		t.Errorf("spent: %v", spent)
	}
	if p := cal.Do(http.StatusForbidden, http.MethodPost, "/v1/system/model/check",
		nil).Object(t); p["missing"] != "operate" {
		t.Errorf("cal: %v", p)
	}
	if got := modelOf(cal); got != nil || modelOf(eve) == nil {
		t.Errorf("without operate: %v", got)
	}
}

// A daemon that answers from a recording has no model to check.
func TestNoModelToCheck(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil).One()
	d.Do(http.StatusNotFound, http.MethodPost, "/v1/system/model/check", nil)
	if got, there := d.Get("/v1/system")["model"]; there {
		t.Errorf("got %v", got)
	}
}

// A model whose server wants less is asked so; what was learned shows.
func TestProfileOfModel(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Default(func(r openaitest.Request) openaitest.Reply {
		switch {
		case r.Body["tools"] != nil:
			return openaitest.Reply{Status: 400, Body: `{"error":"scripted does not support tools"}`}
		case r.Body["max_completion_tokens"] != nil:
			return openaitest.Reply{Status: 422,
				Body: `{"detail":[{"loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]}`}
		}
		return openaitest.Code(rig.ProgAdd)
	})
	d := rig.Start(t, m, "--model-context", "8192", "--model-header", "X-Team=a, b").One()
	d.WantValue(d.Call(d.Session("r"), "m", 1, 2), 3, "generated")
	profile := modelOf(d)["profile"].(map[string]any)
	for name, want := range map[string]any{"tools": "none", "system": "role", "limit_field": "max_tokens",
		"context": 8192.0, "stream_only": false} {
		fact := profile[name].(map[string]any)
		if learned := fact["learned_from"] != nil; fact["value"] != want ||
			learned != (name == "tools" || name == "limit_field") || learned != (fact["expires_at"] != nil) {
			t.Errorf("%s: %v", name, fact)
		}
	}
	if r := m.Requests()[0]; r.Header.Get("X-Team") != "a, b" {
		t.Errorf("headers %v", r.Header)
	}
}

// A prompt that does not fit is followed by one that is short for the context which the refusal states; from then on
// requests are short at once.
func TestShortForASmallContext(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Default(func(r openaitest.Request) openaitest.Reply {
		if n := len(r.Text) / 4; n > 2000 {
			return openaitest.Reply{Status: 400,
				Body: fmt.Sprintf(`{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":%d,"n_ctx":2048}}`, n)}
		}
		return openaitest.Code(rig.ProgAdd)
	})
	d := rig.Start(t, m).One()
	s := d.Session("r")
	d.WantValue(d.Call(s, "m", 1, 2), 3, "generated")
	d.WantValue(d.Call(s, "n", 1, 2), 3, "generated")
	if n := m.Count("", ""); n != 3 {
		t.Errorf("%d requests", n)
	}
}
