package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Bounds of a build beside Options.
const (
	buildCPU  = 60       // seconds of processor time that each tool may use
	buildFile = 64 << 20 // bytes of a file that it writes
)

// A BuildError is a build that failed. It says nothing about the program that the engine does not know better.
type BuildError struct {
	Step string // packages, compile or link
	Text string // what the tool wrote, at most 4 KiB
	Err  error
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("native build: %s: %v: %s", e.Step, e.Err, e.Text)
}

func (e *BuildError) Unwrap() error { return e.Err }

// buildError bounds what a tool wrote.
func buildError(step string, said []byte, err error) *BuildError {
	return &BuildError{Step: step, Text: strings.ToValidUTF8(string(said[:min(len(said), 4<<10)]), "?"), Err: err}
}

// mainText is package main of every executable.
const mainText = `package main

import (
	support "` + supportPath + `"
	"tool"
)

func main() { support.Main(tool.RecurgentNativeProgram) }
`

// build compiles and links the text and moves the executable to its place in the cache.
func (b *Builder) build(ctx context.Context, text, to string) error {
	dir, err := os.MkdirTemp(b.dir("tmp"), "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	packages := filepath.Join("..", "..", b.packagesDir())
	config, err := os.ReadFile(filepath.Join(b.dir(b.packagesDir()), "packages"))
	if err != nil {
		return err
	}
	shared := strings.ReplaceAll(string(config), "@", packages)
	for name, content := range map[string]string{"program.go": text, "main.go": mainText, "tool.cfg": "importmap " + allow.Host + "=" + allow.HostPath + "\n" + shared,
		"main.cfg": shared + "packagefile tool=tool.a\n", "link.cfg": shared + "packagefile tool=tool.a\npackagefile main=main.a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	compile := func(path string) wire.ToolStep {
		return wire.ToolStep{Tool: b.opts.Toolchain.tool("compile"), Args: []string{"-p", path, "-complete", "-pack", "-dwarf=false", "-trimpath", ".", "-lang", release(b.opts.Toolchain.Version),
			"-c", "1", "-importcfg", path + ".cfg", "-o", path + ".a", map[string]string{"tool": "program.go", "main": "main.go"}[path]}}
	}
	link := wire.ToolStep{Tool: b.opts.Toolchain.tool("link"), Args: []string{"-s", "-w", "-buildmode=exe", "-linkmode=internal", "-buildid=", "-importcfg", "link.cfg", "-o", "program", "main.a"}}
	tools := wire.Tools{Dir: dir, Read: []string{b.dir(b.packagesDir())}, Exec: filepath.Dir(link.Tool), Memory: b.opts.Memory, CPU: buildCPU, File: buildFile, Steps: []wire.ToolStep{compile("tool"), compile("main"), link}}
	if said, err := b.opts.Run(ctx, tools); err != nil {
		return buildError("compile and link", said, err)
	}
	return adopt(filepath.Join(dir, "program"), to)
}

// adopt copies what a build has made to its place, where only whole files stand. The directory is the tools' own: nothing there is
// what its name says before it was looked at.
func adopt(from, to string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > buildFile {
		return errors.Join(errors.New("the tools left no executable"), err)
	}
	out, err := os.OpenFile(to+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, buildFile))
	if err := errors.Join(err, out.Chmod(0o555), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}
