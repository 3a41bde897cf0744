// Package launch is the process between the daemon and an executable. A launcher confines itself, reports the layers,
// and executes the file, so that no instruction of the file runs unconfined. If a required layer is missing, it
// executes nothing. It trusts the daemon and reads a single frame from it. It is kept small, because every start of a
// compiled program includes it.
package launch

import (
	"errors"
	"runtime"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// maxLaunch bounds the daemon's frame, in bytes.
const maxLaunch = 1 << 20

// Main is the main function of a launcher. It returns the exit code if it could not execute the file, and does not
// return otherwise.
func Main() int { return wire.ExitCode(launch()) }

// launch does the work of Main. It returns only if the file was not executed.
func launch() error {
	runtime.LockOSThread() // the executed file inherits the confinement of this thread
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
