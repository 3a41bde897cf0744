package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/native/carried"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Bounds of a build in addition to Options.
const (
	buildCPU  = 60       // seconds of processor time per tool
	buildFile = 64 << 20 // bytes of a file that a tool writes
	stepTools = "compile and link"
	maxAbout  = 1 << 20 // bytes of what the cache stores about a program
	maxWords  = 4 << 10 // bytes of a tool's output
)

// A BuildError reports a failed build.
type BuildError struct {
	Step string // toolchain, unpack, packages, or compile and link
	Text string // output of the tool, at most 4 KiB
	Err  error

	// Refusal is the compiler's complaint about the program, at most 4 KiB: its output, or the bound of a build that
	// the program exceeds. It is empty if the failure is not evidence against the program.
	Refusal string
}

func (e *BuildError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("native build: %s: %v", e.Step, e.Err)
	}
	return fmt.Sprintf("native build: %s: %v: %s", e.Step, e.Err, e.Text)
}

func (e *BuildError) Unwrap() error { return e.Err }

// buildError returns a BuildError with the tool's output, cut to maxWords.
func buildError(step string, said []byte, err error) *BuildError {
	return &BuildError{Step: step, Text: strings.ToValidUTF8(string(said[:min(len(said), maxWords)]), "?"), Err: err}
}

// refusal returns the complaint about the program in a tool's failure, or "" if there is none. The compiler's output
// counts if it names a place in the program's text, or a package variable that is too large. A missing archive does not
// count, because the gate has approved the program's imports.
func refusal(said string, err error) string {
	if bound, is := errors.AsType[*wire.ToolLimit](err); is {
		return bound.Error()
	}
	if strings.Contains(said, ": could not import ") {
		return ""
	}
	for _, mark := range []string{"program.go:", ": symbol too large (", "too much data"} {
		if strings.Contains(said, mark) {
			return said
		}
	}
	return ""
}

// mainText returns package main of an executable with the programs. There is one, except in tests that build many at
// once.
func mainText(texts ...string) string {
	var imports, list strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&imports, "\tp%d %q\n", i, packagePath(i))
		fmt.Fprintf(&list, ", p%d.%s", i, variable(text))
	}
	return "package main\n\nimport (\n\tsupport \"" + carried.Support + "\"\n" + imports.String() +
		")\n\nfunc main() { support.Main(" + list.String()[2:] + ") }\n"
}

// variable returns the name of the variable that the last line of a text declares (see rewrite.Text).
func variable(text string) string {
	line := text[strings.LastIndex(text, "\nvar ")+1:]
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "var "), " ")
	if !token.IsExported(name) || !token.IsIdentifier(name) {
		return "RecurgentNativeProgram"
	}
	return name
}

// packagePath returns the import path of the i-th program: "tool", "tool1" and so on.
func packagePath(i int) string {
	if i == 0 {
		return "tool"
	}
	return fmt.Sprintf("tool%d", i)
}

// build compiles and links the texts and moves the executable into the cache, with about, the data about its program.
func (b *Builder) build(ctx context.Context, p *packages, texts []string, digest string, about []byte) error {
	dir, err := os.MkdirTemp(b.dir(b.work), "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	steps, err := b.steps(dir, p, texts)
	if err != nil {
		return err
	}
	tools := wire.Tools{Dir: dir, Read: []string{b.dir(b.packagesDir())}, Env: carried.Settings, Memory: b.opts.Memory,
		CPU: buildCPU, File: buildFile, Steps: steps}
	if said, err := b.opts.Run(ctx, tools); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fault := buildError(stepTools, said, err)
		fault.Refusal = refusal(fault.Text, err)
		return fault
	}
	if err := b.checkToolchain(); err != nil { // the toolchain may have been replaced during the build
		return err
	}
	if !p.unchanged(b.at) { // the tools opened the packages by name
		return &BuildError{Step: "packages", Err: errors.New("the compiled packages were changed while they were used")}
	}
	return b.adopt(filepath.Join(dir, "program"), digest, about)
}

// BuildMany builds one executable of many texts, stores it under name instead of a digest, and returns its path. It is
// for tests and measurements.
func (b *Builder) BuildMany(ctx context.Context, name string, texts []string) (path string, err error) {
	p, err := b.shared(ctx)
	if err != nil {
		return "", err
	}
	return b.at.Path(exeName(name)), b.build(ctx, p, texts, name, nil)
}

// checkToolchain returns a BuildError if the installed toolchain has changed.
func (b *Builder) checkToolchain() error {
	if err := b.opts.Toolchain.unchanged(); err != nil {
		return &BuildError{Step: "toolchain", Err: err}
	}
	return nil
}

// tool returns the absolute path of the tool.
func (b *Builder) tool(name string) string {
	if b.opts.Toolchain.Carried() {
		return filepath.Join(b.dir(b.packagesDir()), name)
	}
	return b.opts.Toolchain.tool(name)
}

// steps writes the input files of the tools into dir and returns their invocations: the compiler for each program and
// for package main, then the linker.
func (b *Builder) steps(dir string, p *packages, texts []string) ([]wire.ToolStep, error) {
	packages := p.config(filepath.Join("..", "..", "..", b.packagesDir()))
	files := map[string]string{"host.cfg": carried.ImportMap() + packages}
	var out []wire.ToolStep
	compile := func(path, config, source, text string) {
		files[source] = text
		args := []string{"-p", path, "-complete", "-pack", "-dwarf=false", "-trimpath", ".", "-lang",
			release(b.opts.Toolchain.Version), "-c", "1", "-importcfg", config, "-o", path + ".a"}
		args = append(append(args, carried.Flags(runtime.GOARCH)...), source)
		out = append(out, wire.ToolStep{Tool: b.tool(carried.Compile), Args: args, Writes: path + ".a"})
		packages += "packagefile " + path + "=" + path + ".a\n"
	}
	for i, text := range texts {
		source := filepath.Join(packagePath(i), "program.go")
		if err := os.Mkdir(filepath.Join(dir, packagePath(i)), 0o755); err != nil {
			return nil, err
		}
		compile(packagePath(i), "host.cfg", source, text)
	}
	files["main.cfg"] = packages
	compile("main", "main.cfg", "main.go", mainText(texts...))
	files["link.cfg"] = packages
	out = append(out, wire.ToolStep{Tool: b.tool(carried.Link),
		Args:   append(linkFlags(runtime.GOOS, texts), "-importcfg", "link.cfg", "-o", "program", "main.a"),
		Writes: "program"})
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// linkFlags returns the flags of the linker. macOS does not execute a file without a UUID. It is derived from the
// texts, so equal texts give equal bytes.
func linkFlags(system string, texts []string) []string {
	flags := []string{"-s", "-w", "-buildmode=exe", "-linkmode=internal", "-buildid="}
	if system == "darwin" {
		sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
		flags = append(flags, "-B", "0x"+hex.EncodeToString(sum[:16]))
	}
	return flags
}
