// Package launch is the process between the daemon and an executable: a launcher confines itself, reports the layers, and becomes the executable, so that no instruction of that
// runs before. It trusts the daemon, reads nothing but the daemon's one frame, and uses little, since each start of a compiled program has this one before it.
package launch

import (
	"errors"
	"runtime"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// maxLaunch bounds the frame, which comes from the daemon.
const maxLaunch = 1 << 20

// Main is the whole of a launcher. It returns the exit code where it did not become the executable.
func Main() int { return wire.ExitCode(launch()) }

func launch() error {
	runtime.LockOSThread() // what it executes has what this thread has
	in, out := wire.Pipe()
	kind, payload, err := in.Next(maxLaunch)
	if err != nil {
		return err
	}
	l, err := wire.ParseLaunch(payload)
	if err != nil || kind != wire.KindLaunch {
		return wire.ErrFrame
	}
	become, err := prepare(l)
	if err != nil {
		return err
	}
	layers := confineThread(&l.Confine)
	var wr wire.Builder
	(&wire.Ready{Layers: layers, Build: wire.Build}).Put(&wr)
	if _, err := out.Write(wr.Finish()); err != nil {
		return err
	}
	if missing := confine.Missing(layers, l.Require); missing != "" {
		return errors.New("layer " + missing + " is " + layers[missing])
	}
	return become.execute()
}
