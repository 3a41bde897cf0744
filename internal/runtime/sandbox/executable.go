package sandbox

import (
	"os"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Values of Result.Tier.
const (
	TierEngine = "engine" // the program is interpreted in a runner, by an engine of package gate
	TierNative = "native" // the program is compiled to a binary
)

// An Executable is a program compiled to a static binary that speaks the runner's wire protocol. A launcher confines it
// before its first instruction.
type Executable struct {
	// File is open and verified, for one process. Exactly this file is executed, so later changes of the directory have
	// no effect. The pool closes it.
	File *os.File
	Args []string // of the command line, after the name
	// Facts of the program, as the gate found them. All runs share them, so they must not be changed.
	Facts *report.Facts
}

// startExecutable launches a process of the executable and sends its configuration. The returned process is confined
// and about to start.
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
