package sandbox

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// An image is an executable from which runners or launchers are started, with its command line.
type image struct {
	path   string
	args   []string   // args[0] is the name of the process
	build  string     // expected wire.Build of its runner; "" means unchecked
	file   *os.File   // the open file that path leads to; nil if path is an ordinary file
	memory bool       // the file is in memory only
	extra  []*os.File // open in its processes after their pipes, from descriptor 4 on
	user   int        // user of the tool that it launches; 0 means that of the runners
	under  *spawner   // spawner that starts its processes under landlock; nil if they confine themselves
}

// errOtherBuild means that the embedded runner was not built with this daemon.
var errOtherBuild = errors.New(
	"the runner in this binary was built from other source than the daemon (build both by make build, or neither)")

// images returns the images that runners can be started from, preferred first: those of the embedded program, then the
// daemon's own binary.
func images(h hooks, o *Options) ([]*image, error) {
	self, err := selfImage(h)
	if err != nil {
		return nil, err
	}
	carried, build := carried{"recurgent-runner", packed(embedded.Runner), embedded.File}, wire.Build
	if h.program != "" {
		carried.write, build = verbatim(h.program), h.build
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

// launchers returns the images that launchers can be started from, preferred first, like images.
func launchers(h hooks, o *Options) ([]*image, error) {
	self, err := selfImage(h)
	if err != nil {
		return nil, err
	}
	self.args = append(self.args, wire.LaunchArg)
	carried := carried{"recurgent-launcher", packed(embedded.Launcher), embedded.LauncherFile}
	if h.launcher != "" {
		carried.write = verbatim(h.launcher)
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

// selfImage returns the daemon's own binary as a runner.
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

// A carried program is embedded in the binary or, in tests of a whole daemon, stored in a file.
type carried struct {
	name  string
	write func(io.Writer) error // writes the program; nil if it is not embedded
	file  string
}

// packed returns a function that writes an embedded program, which scripts/build has compressed, or nil for none. It
// needs little memory, because the heap of a daemon that has just begun stays as large as it once was.
func packed(program string) func(io.Writer) error {
	if program == "" {
		return nil
	}
	return func(w io.Writer) error {
		in, err := zstd.NewReader(strings.NewReader(program), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = in.WriteTo(w)
		return err
	}
}

// verbatim returns a function that writes the program as it is.
func verbatim(program string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, program)
		return err
	}
}

// is reports whether the program is available.
func (c carried) is() bool { return c.write != nil || c.file != "" }

// images returns the program's images, preferred first: an unnamed file on disk, whose pages are mapped many at a time,
// which makes a start a quarter faster, and a file in memory. It returns no image if the system cannot execute unnamed
// files.
func (c carried) images(o *Options) (all []*image, err error) {
	if c.file != "" {
		f, err := os.Open(c.file)
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		i, err := fileImage(c.name, f)
		return []*image{i}, err
	}
	inMemory, err := openMemory(c.name, c.write)
	if err != nil {
		noteFallback(o.Log, err)
		return nil, nil
	}
	inMemory.memory = true
	copied := func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(inMemory.file, 0, math.MaxInt64))
		return err
	}
	if onDisk, err := openUnlinked(o.Dir, c.name, copied); err == nil {
		all = append(all, onDisk)
	}
	return append(all, inMemory), nil
}

// fileImage returns the image of an open file. It takes ownership of f.
func fileImage(name string, f *os.File) (*image, error) {
	f, err := aside(f)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return &image{path: executablePath(f), args: []string{name}, file: f}, nil
}

// noteFallback logs why runners are not started from the embedded program.
func noteFallback(log zerolog.Logger, why error) {
	log.Warn().Err(why).Msg("runners are started from the daemon's own binary, which is slower")
}

// close closes the image's file and its spawner. No process may be started afterwards; processes started earlier
// continue.
func (i *image) close() {
	if i.under != nil {
		i.under.close()
	}
	if i.file != nil {
		i.file.Close()
	}
}
