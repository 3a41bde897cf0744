package sandbox

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// An engine fault is the daemon's failure, whatever the program does about it. The runner ends, and the fault is
// counted.
func TestEngineFailure(t *testing.T) {
	p := nativePool(t, nil)
	for i, c := range []struct{ source, want string }{
		{"plant", "planted"},
		{"plantcontext", "planted"},
		{"fault", "planted"},
		{"compilepanic", "compiler bug"},
	} {
		got := p.Run(t.Context(), request(c.source), &fakeHost{})
		f := got.Failure
		if said(got) != "failure runner_crash/engine" || !f.Ours ||
			!strings.HasPrefix(f.Message, "the engine failed: ") || !strings.Contains(f.Message, c.want) {
			t.Errorf("%s: got %s: %+v", c.source, said(got), f)
		}
		if n := p.Stats().EngineFailures; n != int64(i+1) {
			t.Errorf("%d failures are counted after %d", n, i+1)
		}
		if n := p.Stats().Warm; n != 0 {
			t.Errorf("%s: a runner is kept warm", c.source)
		}
	}
	if _, f := p.Load(t.Context(), request("fault").Program,
		agent.Owner{Name: "local"}); f == nil || f.Detail != detailEngine || !f.Ours {
		t.Errorf("Load: %+v", f)
	}
}

// A program that exceeds a limit of the compiler is itself at fault, and the model gets the message.
func TestLimitIsNoEngineFailure(t *testing.T) {
	p := compilePool(t, nil)
	// Larger than the address space, and than what an executable may have.
	for _, size := range []string{"1 << 50", "1 << 40"} {
		_, f := p.Load(t.Context(),
			request(toolSource("var big ["+size+"]byte", "big[1] = 2\n\treturn big[3], nil")).Program,
			agent.Owner{Name: "local"})
		if f == nil || f.Type != agent.ErrInvalidCode || f.Ours || !strings.Contains(f.Message, "larger than") &&
			!strings.Contains(f.Message, "too large") {
			t.Errorf("%s: got %+v", size, f)
		}
	}
	if n := p.Stats().EngineFailures; n != 0 {
		t.Errorf("%d failures are counted", n)
	}
}
