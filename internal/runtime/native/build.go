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

// Bounds of a build beside Options.
const (
	buildCPU  = 60       // seconds of processor time that each tool may use
	buildFile = 64 << 20 // bytes of a file that it writes
	stepTools = "compile and link"
	maxAbout  = 1 << 20 // bytes of what is known about a program
	maxWords  = 4 << 10 // bytes of what a tool wrote
)

// A BuildError is a build that failed.
type BuildError struct {
	Step string // toolchain, unpack, packages, or compile and link
	Text string // what the tool wrote, at most 4 KiB
	Err  error

	// Refusal is what the compiler has against the program, at most 4 KiB: its words, or which bound of a build the program exceeds. "" where the failure says nothing about the program.
	Refusal string
}

func (e *BuildError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("native build: %s: %v", e.Step, e.Err)
	}
	return fmt.Sprintf("native build: %s: %v: %s", e.Step, e.Err, e.Text)
}

func (e *BuildError) Unwrap() error { return e.Err }

// buildError bounds what a tool wrote.
func buildError(step string, said []byte, err error) *BuildError {
	return &BuildError{Step: step, Text: strings.ToValidUTF8(string(said[:min(len(said), maxWords)]), "?"), Err: err}
}

// refusal returns what the failure of the tools says against the program. The compiler's words do where they have a place in the program's text, or are of its package variables, which are
// too large. A missing archive does not count against a program, whose imports the gate has seen.
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

// mainText is package main of an executable with the programs: one, but for tests that build many at once.
func mainText(texts ...string) string {
	var imports, list strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&imports, "\tp%d %q\n", i, packagePath(i))
		fmt.Fprintf(&list, ", p%d.%s", i, variable(text))
	}
	return "package main\n\nimport (\n\tsupport \"" + carried.Support + "\"\n" + imports.String() +
		")\n\nfunc main() { support.Main(" + list.String()[2:] + ") }\n"
}

// variable returns the name of the variable that the last line of a text declares (rewrite.Text).
func variable(text string) string {
	line := text[strings.LastIndex(text, "\nvar ")+1:]
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "var "), " ")
	if !token.IsExported(name) || !token.IsIdentifier(name) {
		return "RecurgentNativeProgram"
	}
	return name
}

// packagePath is the path of a program's package: "tool", and "tool1" and so on for those behind the first.
func packagePath(i int) string {
	if i == 0 {
		return "tool"
	}
	return fmt.Sprintf("tool%d", i)
}

// build compiles and links the texts and moves the executable to its place in the cache, with what is known about its program.
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
	if err := b.checkToolchain(); err != nil { // replaced meanwhile, perhaps between two steps
		return err
	}
	if !p.unchanged(b.at) { // the tools opened them by their names
		return &BuildError{Step: "packages", Err: errors.New("the compiled packages were changed while they were used")}
	}
	return b.adopt(filepath.Join(dir, "program"), digest, about)
}

// BuildMany builds one executable of many programs, by their texts, under a name in the place of a digest, and returns where it is. It is for tests and measurements.
func (b *Builder) BuildMany(ctx context.Context, name string, texts []string) (path string, err error) {
	p, err := b.shared(ctx)
	if err != nil {
		return "", err
	}
	return b.at.Path(exeName(name)), b.build(ctx, p, texts, name, nil)
}

func (b *Builder) checkToolchain() error {
	if err := b.opts.Toolchain.unchanged(); err != nil {
		return &BuildError{Step: "toolchain", Err: err}
	}
	return nil
}

// tool is the absolute path of the tool.
func (b *Builder) tool(name string) string {
	if b.opts.Toolchain.Carried() {
		return filepath.Join(b.dir(b.packagesDir()), name)
	}
	return b.opts.Toolchain.tool(name)
}

// steps writes what the tools read and returns how they are called: the compiler for each program and for package main, then the linker.
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

// linkFlags are those of the linker. macOS executes no file without a UUID; it follows from the programs here, so that the same ones give the same bytes.
func linkFlags(system string, texts []string) []string {
	flags := []string{"-s", "-w", "-buildmode=exe", "-linkmode=internal", "-buildid="}
	if system == "darwin" {
		sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
		flags = append(flags, "-B", "0x"+hex.EncodeToString(sum[:16]))
	}
	return flags
}
