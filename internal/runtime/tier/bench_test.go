package tier

import (
	"strconv"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// What the tier adds to a call: the look-up of its program and the count, among a thousand programs.
func BenchmarkCall(b *testing.B) {
	t, err := New(Options{Builder: &rig{}, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	sums := make([]string, 1000)
	for i := range sums {
		sums[i] = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f0" + strconv.Itoa(i)
		t.Program(Key{"default", "calculator", "add", sums[i]})
	}
	res := sandbox.Result{Tier: sandbox.TierEngine}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := t.Program(Key{"default", "calculator", "add", sums[i%len(sums)]})
		if p.Executable() != nil || p.Ran(&res, hot) {
			b.Fatal("it is hot")
		}
	}
}
