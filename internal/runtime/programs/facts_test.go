package programs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

func TestFactsCache(t *testing.T) {
	t.Parallel()
	var c Facts
	g := func(checksum, facts string) *agent.Generation {
		return &agent.Generation{CodeChecksum: checksum, Facts: json.RawMessage(facts)}
	}
	first := c.Of(g("a", `{"uses_fetch":true}`))
	if !first.UsesFetch || first.UsesArgs || c.Of(g("a", "")) != first {
		t.Errorf("facts %+v", first)
	}
	for _, odd := range []string{"", "[", "7"} {
		if f := c.Of(g("odd"+odd, odd)); !f.UsesArgs {
			t.Errorf("%q: nothing is known, and it counts as %+v", odd, f)
		}
	}
	most := 4096
	for i := len(c.all); i < most; i++ {
		c.Of(g(strings.Repeat("x", i), "{}"))
	}
	if len(c.all) != most || c.Of(g("a", "")) != first {
		t.Errorf("%d are kept", len(c.all))
	}
	if c.Of(g("one more", "{}")); len(c.all) != 1 {
		t.Errorf("%d are kept beyond the bound", len(c.all))
	}
}

func TestEncodeFacts(t *testing.T) {
	t.Parallel()
	facts := func(n int) *report.Facts { return &report.Facts{Imports: []string{strings.Repeat("x", n)}} }
	rest := len(EncodeFacts(facts(1))) - 1
	if raw := EncodeFacts(facts(maxFactsEncoded - rest)); len(raw) != maxFactsEncoded {
		t.Errorf("facts of the greatest size: %d bytes", len(raw))
	}
	if raw := EncodeFacts(facts(maxFactsEncoded - rest + 1)); raw != nil {
		t.Errorf("facts of %d bytes are kept", len(raw))
	}
}

func TestEngineOf(t *testing.T) {
	t.Parallel()
	for engine, want := range map[string]string{"ssa 3": "ssa", "yaegi v0.16": "yaegi", "": "", "other 1": "",
		"ssaa": ""} {
		got, tier := EngineOf(&report.Facts{Engine: engine})
		if got != want || (tier == sandbox.TierEngine) != (want != "") {
			t.Errorf("%q: %q of tier %q", engine, got, tier)
		}
	}
	if got, tier := EngineOf(nil); got != "" || tier != "" {
		t.Errorf("nothing is known: %q of tier %q", got, tier)
	}
}
