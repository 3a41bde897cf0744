package native

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Settings of Find that name no directory.
const (
	SettingAuto = "auto" // the toolchain that PATH leads to, where it fits
	SettingOff  = "off"
)

// ErrOff says that there is no native tier, and wraps the reason where auto found no toolchain that fits.
var ErrOff = errors.New("the native tier is off")

// A Toolchain is an installed Go toolchain of the Go version that the engine follows.
type Toolchain struct {
	Root    string // GOROOT, absolute
	Version string // as in its VERSION file: go1.26.8
}

// Find returns the toolchain that a setting means: SettingAuto, SettingOff or a GOROOT. The error matches ErrOff for SettingOff and where
// SettingAuto finds none; a GOROOT that does not serve is any other error. It runs nothing.
func Find(setting string) (Toolchain, error) {
	switch setting {
	case SettingOff:
		return Toolchain{}, ErrOff
	case SettingAuto, "":
		root, err := rootOnPath()
		if err == nil {
			var t Toolchain
			if t, err = toolchainAt(root); err == nil {
				return t, nil
			}
		}
		return Toolchain{}, fmt.Errorf("%w: %w", ErrOff, err)
	}
	return toolchainAt(setting)
}

// rootOnPath returns the GOROOT of the go command on PATH: bin/go stands in it.
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

// toolchainAt checks that the toolchain is complete and that its programs compute what the engine's do: the same release of Go, for the
// daemon's own platform.
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
		return Toolchain{}, fmt.Errorf("the toolchain in %s is %.40q, and must be %s", root, t.Version, release(runtime.Version()))
	}
	for _, tool := range []string{"compile", "link", "asm"} {
		if _, err := os.Stat(t.tool(tool)); err != nil {
			return Toolchain{}, fmt.Errorf("the toolchain in %s is not complete: %w", root, err)
		}
	}
	return t, nil
}

// platform returns an error where programs are not compiled: compilers for other processors fuse multiplications with additions, and get other floating-point
// results than the engine.
func platform(system, processor string) error {
	if system != "linux" || processor != "amd64" {
		return fmt.Errorf("native programs are for linux on amd64, not %s on %s", system, processor)
	}
	return nil
}

// unchanged returns an error where the directory no longer holds the toolchain that Find returned. Packages and executables of two toolchains must not be mixed.
func (t Toolchain) unchanged() error {
	now, err := toolchainAt(t.Root)
	if err == nil && now.Version != t.Version {
		err = fmt.Errorf("%s holds %.40q now", t.Root, now.Version)
	}
	if err != nil {
		err = fmt.Errorf("the Go toolchain is not the one that was there when the daemon started, %s: %w", t.Version, err)
	}
	return err
}

func (t Toolchain) tool(name string) string {
	return filepath.Join(t.Root, "pkg", "tool", runtime.GOOS+"_"+runtime.GOARCH, name)
}

// release returns a version without its patch release: go1.26 of go1.26.8.
func release(version string) string {
	version, _, _ = strings.Cut(version, " ")
	major, rest, _ := strings.Cut(version, ".")
	digits := 0
	for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
		digits++
	}
	return major + "." + rest[:digits]
}
