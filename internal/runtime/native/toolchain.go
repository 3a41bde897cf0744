package native

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/native/carried"
)

// A Toolchain compiles and links programs. It is an installed Go toolchain of the release that the daemon was built
// with, or the one that the binary embeds.
type Toolchain struct {
	Root    string // absolute GOROOT; "" for the embedded one
	Version string // Go version, such as go1.26.8

	pack *carried.Pack // nil for an installed toolchain
}

// From returns the origin of the toolchain: "carried" or "installed".
func (t Toolchain) From() string {
	if t.Carried() {
		return "carried"
	}
	return "installed"
}

// Carried reports whether the binary embeds the toolchain.
func (t Toolchain) Carried() bool { return t.pack != nil }

// Find returns the toolchain embedded as pack or, if pack is empty, the one on PATH. The error explains why there is no
// suitable one. Find does not run anything.
func Find(pack string) (Toolchain, error) {
	if pack != "" {
		return toolchainIn(pack)
	}
	root, err := rootOnPath()
	if err != nil {
		return Toolchain{}, err
	}
	return toolchainAt(root)
}

// toolchainIn opens the embedded toolchain, which must be of the release that built the daemon.
func toolchainIn(pack string) (Toolchain, error) {
	if err := platform(runtime.GOOS, runtime.GOARCH); err != nil {
		return Toolchain{}, err
	}
	p, err := carried.Open(pack)
	if err != nil {
		return Toolchain{}, err
	}
	if own, _, _ := strings.Cut(runtime.Version(), " "); p.Go != own || p.System != runtime.GOOS ||
		p.Processor != runtime.GOARCH {
		return Toolchain{}, fmt.Errorf("the carried compiler is of %s for %s on %s, and must be of %s", p.Go, p.System,
			p.Processor, own)
	}
	return Toolchain{Version: p.Go, pack: p}, nil
}

// rootOnPath returns the GOROOT of the go command on PATH, the directory that contains bin/go.
func rootOnPath() (string, error) {
	name, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("no go command on PATH")
	}
	if name, err = filepath.EvalSymlinks(name); err != nil {
		return "", err
	}
	return filepath.Dir(filepath.Dir(name)), nil
}

// toolchainAt returns the toolchain in root. It must be complete, and of the same release of Go as the daemon for the
// same platform, so that programs compute what the engine's do.
func toolchainAt(root string) (Toolchain, error) {
	if err := platform(runtime.GOOS, runtime.GOARCH); err != nil {
		return Toolchain{}, err
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return Toolchain{}, err
	}
	t := Toolchain{Root: root}
	data, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return Toolchain{}, fmt.Errorf("%s is no Go toolchain: %w", root, err)
	}
	t.Version, _, _ = strings.Cut(strings.TrimSpace(string(data)), "\n")
	if release(t.Version) != release(runtime.Version()) {
		return Toolchain{}, fmt.Errorf("the toolchain in %s is %.40q, and must be %s", root, t.Version,
			release(runtime.Version()))
	}
	for _, tool := range []string{"compile", "link", "asm"} {
		if _, err := os.Stat(t.tool(tool)); err != nil {
			return Toolchain{}, fmt.Errorf("the toolchain in %s is not complete: %w", root, err)
		}
	}
	return t, nil
}

// platform returns an error if programs cannot be compiled on the platform.
func platform(system, processor string) error {
	if system != "linux" && system != "darwin" || processor != "amd64" && processor != "arm64" {
		return fmt.Errorf("programs are compiled for linux and darwin on amd64 and arm64, not for %s on %s", system,
			processor)
	}
	return nil
}

// unchanged returns an error if the directory of an installed toolchain no longer holds the version that Find returned.
// Packages and executables of two toolchains must not be mixed.
func (t Toolchain) unchanged() error {
	if t.Carried() {
		return nil // its files are verified with the packages
	}
	now, err := toolchainAt(t.Root)
	if err == nil && now.Version != t.Version {
		err = fmt.Errorf("%s holds %.40q now", t.Root, now.Version)
	}
	if err != nil {
		err = fmt.Errorf("the Go toolchain is not the one that was there when the daemon started, %s: %w", t.Version,
			err)
	}
	return err
}

func (t Toolchain) tool(name string) string {
	return filepath.Join(t.Root, "pkg", "tool", runtime.GOOS+"_"+runtime.GOARCH, name)
}

// release returns a version without its patch number: go1.26 for go1.26.8.
func release(version string) string {
	version, _, _ = strings.Cut(version, " ")
	major, rest, _ := strings.Cut(version, ".")
	digits := 0
	for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
		digits++
	}
	return major + "." + rest[:digits]
}
