package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Shrinking leaves the steps that a failure needs, and steps can be written and read.
func TestShrink(t *testing.T) {
	t.Parallel()
	steps := usually.Draw(rand.New(rand.NewPCG(1, 1)))
	cuts := func(steps []Step) (n int) {
		for _, s := range steps {
			if s.Kind == Cut {
				n++
			}
		}
		return n
	}
	asked := 0
	small := Shrink(steps, 1000, func(rest []Step) bool {
		asked++
		return cuts(rest) >= 2
	})
	if len(small) != 2 || cuts(small) != 2 || asked > 200 {
		t.Errorf("%d steps are left of %d after %d questions, want 2 cuts: %v", len(small), len(steps), asked, small)
	}
	var text strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&text, s)
	}
	again, err := ParseSteps(text.String())
	if err != nil || fmt.Sprint(again) != fmt.Sprint(steps) {
		t.Errorf("the steps were read as others: %v", err)
	}
}
