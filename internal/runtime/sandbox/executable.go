package sandbox

import (
	"os"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Tiers: what runs a program.
const (
	TierEngine = "engine" // an engine of package gate in a runner
	TierNative = "native" // the program itself, compiled to a binary
)

// An Executable is a program compiled to a static binary that speaks the runner's wire. A launcher confines it before its first instruction.
type Executable struct {
	// open, for one process, and verified: what is run is this file, so a change of the directory has no effect; the pool closes it
	File *os.File
	Args []string // of its command line
	// of the program, as the gate found them: those of each run; they are shared and must not be changed
	Facts *report.Facts
}

// startExecutable starts a process of the executable, and returns it when it is about to begin, confined.
func (p *Pool) startExecutable(program *os.File, args []string) (*runner, error) {
	r, err := p.launch(p.programLaunch(append([]string{"recurgent-native"}, args...)), []*os.File{program}, "")
	if err != nil {
		return nil, err
	}
	cfg := p.programConfig()
	cfg.Put(&r.wr)
	if _, err := r.in.Write(r.wr.Finish()); err != nil {
		r.bury("spawn")
		return nil, err
	}
	return r, nil
}
