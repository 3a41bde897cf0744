package generate

import (
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
)

// A seed always writes the same program, and the gate accepts it unchanged.
func TestPrograms(t *testing.T) {
	g, err := gate.New(gate.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		p := Write(seed)
		if again := Write(seed); again.Text != p.Text {
			t.Errorf("seed %d writes two programs", seed)
		}
		if _, refusal := g.Check(p.Source()); refusal != nil {
			t.Errorf("seed %d: refused: %s %q", seed, refusal.Message, refusal.Errors)
		}
	}
}
