package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Tiers: what runs a program.
const (
	TierEngine = "engine" // an engine of package gate in a runner
	TierNative = "native" // the program itself, compiled to a binary
)

// An Executable is a program compiled to a static binary that speaks the runner's wire. A launcher confines it before its first instruction. It is shared and must not be changed.
type Executable struct {
	Path   string        // of the file, which every user may execute
	Digest string        // "sha256:" and hex, of the file's bytes: no other bytes are run
	Args   []string      // of its command line
	Facts  *report.Facts // of the program, as the gate found them: those of each run
}

// Sum returns the digest of an executable's bytes.
func Sum(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// open opens the file and checks its bytes. What is run is the open file, so a change of the directory afterwards has no effect.
func (x *Executable) open() (*os.File, error) {
	f, err := os.OpenFile(x.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // a pipe in its place would block
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", x.Path), err)
	}
	sum, err := Sum(f)
	if err == nil && sum != x.Digest {
		err = fmt.Errorf("%s has other bytes than were built", x.Path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
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
