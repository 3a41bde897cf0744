package diff

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// pressed are the parts of the corpus about types that programs declare.
const pressed = "recursive/,shapes/,types/,types2/,kinds/,copies/,generated/"

// Programs whose types refer to themselves keep their values while the collector runs all the time, fills what it frees, and
// marks a second time to compare.
func TestUnderPressure(t *testing.T) {
	if testing.Short() {
		t.Skip("long: generated and recorded programs, and the Go project's tests, against the toolchain")
	}
	for _, settings := range []string{"GOGC=1 GODEBUG=clobberfree=1", "GOGC=3 GODEBUG=gccheckmark=1", "GOGC=5 GODEBUG=clobberfree=1,gccheckmark=1"} {
		t.Run(settings, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestDifferential$")
			cmd.Env = append(append(os.Environ(), "DIFF_ONLY="+pressed), strings.Fields(settings)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out[:min(len(out), 4000)])
			}
		})
	}
}
