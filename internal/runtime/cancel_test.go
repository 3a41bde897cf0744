//go:build !scripted

package runtime

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// A nested call can be canceled from the moment that it is listed as running.
func TestCancelNested(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{
		"boss.work": {run("\to := call.Tool(\"helper\").Call(\"help\", 20.0)\n\treturn o.ErrorType, nil")},
	})
	_, ask := conversation(t, r, sessions.Request{Role: "boss"})
	model.Hang = "helper.help"
	done := make(chan Reply, 1)
	go func() { done <- ask("work") }()
	nested := func() string {
		for _, e := range r.RunningCalls() {
			if e.Depth == 1 {
				return e.CallID
			}
		}
		return ""
	}
	id := nested()
	for id == "" {
		id = nested()
	}
	if !r.CancelRunning(id) {
		t.Fatal("the nested call cannot be canceled")
	}
	wantReply(t, "its caller gets the error and goes on", <-done, `"`+agent.ErrCanceled+`" generated`)
}
