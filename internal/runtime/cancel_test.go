//go:build !scripted

package runtime

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A nested call can be canceled from the moment that it is listed as running.
func TestCancelNested(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{
		"boss.work": {run("\to := call.Tool(\"helper\").Call(\"help\", 20.0)\n\treturn o.ErrorType, nil")},
	})
	_, ask := conversation(t, r, SessionRequest{Role: "boss"})
	model.Hang = "helper.help"
	done := make(chan Reply, 1)
	go func() { done <- ask("work") }()
	nested := func() *opened {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range r.running {
			if c.Depth == 1 {
				return c
			}
		}
		return nil
	}
	c := nested()
	for c == nil {
		c = nested()
	}
	if !r.CancelRunning(c.ID) {
		t.Fatal("the nested call cannot be canceled")
	}
	wantReply(t, "its caller gets the error and goes on", <-done, `"`+agent.ErrCanceled+`" generated`)
}
