package worker

import "testing"

// Both engines pass the test; every setting runs it.
func TestSelfTest(t *testing.T) {
	for _, setting := range []string{"auto", "ssa", "yaegi"} {
		e, err := NewEngine(setting)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.(*gateEngine).SelfTest(); err != nil {
			t.Errorf("%s: %v", setting, err)
		}
		if got := e.(*gateEngine).answer("package tool\nfunc Run(call *recurgent.Call) (any, error) { panic(1) }"); got != "panic: 1" {
			t.Errorf("%s: got %s", setting, got)
		}
	}
}

// BenchmarkSelfTest is what the test adds to a start.
func BenchmarkSelfTest(b *testing.B) {
	for b.Loop() {
		e, err := NewEngine("auto")
		if err != nil {
			b.Fatal(err)
		}
		if err := e.(*gateEngine).SelfTest(); err != nil {
			b.Fatal(err)
		}
	}
}
