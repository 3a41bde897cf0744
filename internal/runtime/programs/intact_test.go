package programs

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A text counts as intact only if it is the one that was hashed.
func TestIntactCache(t *testing.T) {
	good := &agent.Generation{Code: "package tool", CodeChecksum: agent.Checksum("package tool")}
	changed := &agent.Generation{Code: "package tool // changed", CodeChecksum: good.CodeChecksum}
	var c Intact
	for range 2 {
		if c.Has(changed) || !c.Has(good) || c.Has(changed) {
			t.Fatalf("got changed %v, good %v, want false, true", c.Has(changed), c.Has(good))
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.Has(good) }); n != 0 {
		t.Errorf("got %v allocations for a known text, want none", n)
	}
}
