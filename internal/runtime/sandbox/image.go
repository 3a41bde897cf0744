package sandbox

import (
	"errors"
	"fmt"
	"os"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// An image is an executable that runners or launchers are started from, and its command line.
type image struct {
	path   string
	args   []string   // the first is the process's name
	build  string     // wire.Build of the runner in it; "" is not checked
	file   *os.File   // what path leads to; nil where path is a file of the system's
	memory bool       // it lies in no directory
	extra  []*os.File // open in its processes in addition to their pipes, from descriptor 4 on
	user   int        // whose a compiler or linker is that it launches; 0 for the runners'
	under  *spawner   // that starts them under landlock; nil where they put it on themselves
}

// errOtherBuild says that the runner in the binary does not belong to the daemon in it.
var errOtherBuild = errors.New(
	"the runner in this binary was built from other source than the daemon (build both by make build, or neither)")

// images returns the images that runners can be started from, the preferred one first: the program that the binary carries, and the binary
// itself.
func images(h hooks, o *Options) ([]*image, error) {
	self, err := selfImage(h)
	if err != nil {
		return nil, err
	}
	carried, build := carried{"recurgent-runner", embedded.Runner, embedded.File}, wire.Build
	if h.program != "" {
		carried.program, build = h.program, h.build
	}
	if h.args != nil || !carried.is() {
		return []*image{self}, nil
	}
	if build == "" {
		return nil, fmt.Errorf("sandbox: %w", errOtherBuild)
	}
	all, err := carried.images(o)
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		i.build = build
	}
	if len(all) > 0 && !all[0].memory {
		if locked, err := underLandlock(all[0], h.start); err == nil {
			all = append([]*image{locked}, all...)
		}
	}
	if carried.file != "" {
		return all, nil
	}
	return append(all, self), nil
}

// launchers returns the images that launchers can be started from, in the same way.
func launchers(h hooks, o *Options) ([]*image, error) {
	self, err := selfImage(h)
	if err != nil {
		return nil, err
	}
	self.args = append(self.args, wire.LaunchArg)
	carried := carried{"recurgent-launcher", embedded.Launcher, embedded.LauncherFile}
	if h.launcher != "" {
		carried.program = h.launcher
	}
	if h.args != nil || !carried.is() {
		return []*image{self}, nil
	}
	all, err := carried.images(o)
	for _, i := range all {
		i.build = wire.Build
	}
	return append(all, self), err
}

// selfImage is the daemon's own binary as a runner.
func selfImage(h hooks) (*image, error) {
	exe, err := selfExe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: the daemon's own binary: %w", err)
	}
	if h.args != nil {
		return &image{path: exe, args: append([]string{"recurgentd"}, h.args...)}, nil
	}
	return &image{path: exe, args: []string{"recurgentd", wire.RunnerArg}}, nil
}

// A carried program is one that the binary carries, or, in tests of a whole daemon, one that stands in a file.
type carried struct{ name, program, file string }

func (c carried) is() bool { return c.program != "" || c.file != "" }

// images returns the program's images: a file on the disk, whose pages are mapped many at a time, so that a start takes a quarter less, and one in memory. Where a system allows no executable
// file without a name there is none.
func (c carried) images(o *Options) (all []*image, err error) {
	if c.file != "" {
		f, err := os.Open(c.file)
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		i, err := fileImage(c.name, f)
		return []*image{i}, err
	}
	inMemory, err := openMemory(c.name, c.program)
	if err != nil {
		noteFallback(o.Log, err)
		return nil, nil
	}
	inMemory.memory = true
	if onDisk, err := openUnlinked(o.Dir, c.name, c.program); err == nil {
		all = append(all, onDisk)
	}
	return append(all, inMemory), nil
}

// fileImage is the image of an open file, which it takes.
func fileImage(name string, f *os.File) (*image, error) {
	f, err := aside(f)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return &image{path: executablePath(f), args: []string{name}, file: f}, nil
}

// noteFallback logs why runners are not started from the program that the binary carries.
func noteFallback(log zerolog.Logger, why error) {
	log.Warn().Err(why).Msg("runners are started from the daemon's own binary, which is slower")
}

// close closes the image's file, after the last start. Processes that were started from it go on.
func (i *image) close() {
	if i.under != nil {
		i.under.close()
	}
	if i.file != nil {
		i.file.Close()
	}
}
