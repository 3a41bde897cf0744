package sandbox

import (
	"errors"
	"fmt"
	"os"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// An image is an executable that runners are started from, and its command line.
type image struct {
	path  string
	args  []string   // the first is the process's name
	build string     // wire.Build of the runner in it; "" is not checked
	file  *os.File   // what path leads to; nil where path is a file of the system's
	extra []*os.File // what its processes find open beside their pipes, from descriptor 4 on
	tool  bool       // it executes a compiler or linker
	under *spawner   // that starts them under landlock; nil where they put it on themselves
}

// errOtherBuild says that the runner in the binary does not belong to the daemon in it.
var errOtherBuild = errors.New("the runner in this binary was built from other source than the daemon (build both by make build, or neither)")

// images returns the images that runners can be started from, the preferred one first: the program that the binary carries, and the binary
// itself.
func images(h hooks, o *Options) ([]*image, error) {
	exe, err := selfExe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: the daemon's own binary: %w", err)
	}
	self := &image{path: exe, args: []string{"recurgentd", wire.RunnerArg}}
	if h.args != nil {
		self.args = append([]string{"recurgentd"}, h.args...)
		return []*image{self}, nil
	}
	carried, build := embedded.Runner, wire.Build
	if h.program != "" {
		carried, build = h.program, h.build
	}
	if carried == "" && embedded.File == "" {
		return []*image{self}, nil
	}
	if build == "" {
		return nil, fmt.Errorf("sandbox: %w", errOtherBuild)
	}
	const name = "recurgent-runner"
	if embedded.File != "" {
		return fromFile(name, build, h)
	}
	inMemory, err := openMemory(name, carried)
	if err != nil { // some systems allow no executable file without a name
		noteFallback(o.Log, err)
		return []*image{self}, nil
	}
	all := []*image{inMemory, self}
	if onDisk, err := openUnlinked(o.Dir, name, carried); err == nil { // pages of a disk's file are mapped many at a time: a start takes a quarter less
		all = []*image{onDisk, inMemory, self}
		if locked, err := underLandlock(onDisk, h.start); err == nil {
			all = append([]*image{locked}, all...)
		}
	}
	for _, i := range all[:len(all)-1] {
		i.build = build
	}
	return all, nil
}

// fromFile returns the images of the program in the file embedded.File.
func fromFile(name, build string, h hooks) ([]*image, error) {
	f, err := os.Open(embedded.File)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	all := []*image{fileImage(name, f)}
	if locked, err := underLandlock(all[0], h.start); err == nil {
		all = append([]*image{locked}, all...)
	}
	for _, i := range all {
		i.build = build
	}
	return all, nil
}

// fileImage is the image of an open file.
func fileImage(name string, f *os.File) *image {
	return &image{path: fmt.Sprintf("/proc/self/fd/%d", f.Fd()), args: []string{name}, file: f}
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
