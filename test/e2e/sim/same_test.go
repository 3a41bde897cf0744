package sim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The same seed leads to the same life to the byte: to the same requests, replies and operations of the disk at the
// same times. Each life is one of a fresh process, in which no order of a map and no address is the same.
func TestSameSeed(t *testing.T) {
	dir := t.TempDir()
	var traces [2][]byte
	for i := range traces {
		file := filepath.Join(dir, fmt.Sprint(i))
		cmd := exec.Command(os.Args[0], "-test.run=^TestLife$")
		// without preemption and collections goroutines take turns only where they wait
		cmd.Env = append(os.Environ(), "LIFE_SEED=1", "LIFE_SEEDS=1", "LIFE_TRACE="+file,
			"GODEBUG=asyncpreemptoff=1", "GOGC=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var err error
		if traces[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	first, second := bytes.Split(traces[0], []byte("\n")), bytes.Split(traces[1], []byte("\n"))
	if len(first) < 1000 {
		t.Fatalf("the trace has %d lines", len(first))
	}
	for i := range min(len(first), len(second)) {
		if !bytes.Equal(first[i], second[i]) {
			t.Fatalf("line %d of the trace differs:\n%.1000s\n%.1000s", i+1, first[i], second[i])
		}
	}
	if len(first) != len(second) {
		t.Errorf("one trace has %d lines, the other %d", len(first), len(second))
	}
}
