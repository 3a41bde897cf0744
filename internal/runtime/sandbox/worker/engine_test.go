package worker

import (
	"os"
	"runtime"
	"testing"
)

// firstEngine is how many bytes the first engine of the process allocates.
var firstEngine uint64

func TestMain(m *testing.M) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := NewEngine("auto"); err != nil {
		panic(err)
	}
	runtime.ReadMemStats(&after)
	firstEngine = after.TotalAlloc - before.TotalAlloc
	os.Exit(m.Run())
}

// A runner starts without the table of lines that the reader of export data makes elsewhere.
func TestNoTableOfLines(t *testing.T) {
	const table = 64 << 10 * 8
	if firstEngine > table*3/4 {
		t.Errorf("an engine takes %d bytes; the table alone takes %d", firstEngine, table)
	}
	t.Logf("%d bytes", firstEngine)
}

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
