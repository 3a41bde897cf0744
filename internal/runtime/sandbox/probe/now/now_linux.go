// Package now makes the canary's probes in its init function, before main, if the command line asks for it
// (wire.ProbeArg). A launcher executes a runner's program that way, and the daemon learns what an executable's code may
// do from its first instruction on, before package narrow takes more rights away.
package now

import (
	"os"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

func init() {
	if len(os.Args) != 5 || os.Args[1] != wire.ProbeArg {
		return
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(os.Args[2+i]) // the daemon formatted it
	}
	_, out := wire.Pipe()
	var wr wire.Builder
	(&wire.Ready{Probes: probe.Launched(probe.Bounds{Parent: n[0], Data: uintptr(n[1]),
		Mapped: uintptr(n[2])})}).Put(&wr)
	_, err := out.Write(wr.Finish())
	os.Exit(wire.ExitCode(err))
}
