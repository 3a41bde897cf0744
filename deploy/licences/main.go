// Command licences writes one text with the licences of everything that a Go binary is built from: its modules, Go
// itself with its compiler, and third-party code in the checkout. It fails if one of them lacks a licence.
//
//	licences BINARY >THIRD_PARTY_LICENCES.txt
//
// It runs in a directory of the module that the binary was built of, with the sources of its modules at hand, as after
// a build.
package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("give a binary"))
	}
	if err := write(os.Stdout, os.Args[1]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "licences:", err)
	os.Exit(1)
}

func write(w io.Writer, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	dirs, err := places(info)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		texts, err := licencesIn(d.dir)
		if err != nil {
			return err
		}
		if len(texts) == 0 {
			return fmt.Errorf("%s has no licence in %s", d.name, d.dir)
		}
		for _, text := range texts {
			fmt.Fprintf(w, "%s\n%s\n\n%s\n\n", d.name, strings.Repeat("=", len(d.name)), bytes.TrimSpace(text))
		}
	}
	return nil
}

// A place is where something that the binary holds lies.
type place struct{ name, dir string }

// places are the directories of Go, of the modules, and of what was copied into the checkout.
func places(info *debug.BuildInfo) ([]place, error) {
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	// The binary holds Go's library, and carries its compiler and linker, in which there is one module of another
	// licence file.
	list := []place{{"Go " + strings.TrimPrefix(info.GoVersion, "go"), root},
		{"golang.org/x/telemetry, in Go's tools", filepath.Join(root, "src", "cmd", "vendor", "golang.org", "x",
			"telemetry")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		dir, err := output("go", "list", "-m", "-f", "{{.Dir}}", m.Path)
		if err != nil {
			return nil, err
		}
		list = append(list, place{m.Path + " " + m.Version, dir})
	}
	within, err := packages(info)
	if err != nil {
		return nil, err
	}
	top, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	copied, err := carried(top)
	return slices.Concat(list, within, copied), err
}

// packages returns the directories of the packages that have a licence of their own within their module.
func packages(info *debug.BuildInfo) (list []place, err error) {
	out, err := output("go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{$.ImportPath}} {{$.Dir}} {{.Dir}}{{end}}{{end}}",
		strings.TrimSuffix(info.Path, ".test"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		of := strings.Fields(line)
		if len(of) != 3 || of[1] == of[2] {
			continue
		}
		if texts, err := licencesIn(of[1]); err != nil {
			return nil, err
		} else if len(texts) > 0 {
			list = append(list, place{of[0], of[1]})
		}
	}
	return list, nil
}

// carried returns the directories below internal that have a licence of their own, except test data.
func carried(top string) (list []place, err error) {
	err = filepath.WalkDir(filepath.Join(top, "internal"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !d.IsDir() && named.MatchString(d.Name()):
			at, err := filepath.Rel(top, filepath.Dir(path))
			list = append(list, place{filepath.ToSlash(at), filepath.Dir(path)})
			return err
		}
		return nil
	})
	return list, err
}

// named matches the files that modules have for their licences, also of patents, and for the notices that these want to
// be kept.
var named = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|notice|patents)([.-].*)?$`)

// licencesIn returns the texts of the directory's licences, ordered by file name. It ignores source files.
func licencesIn(dir string) (texts [][]byte, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if !f.Type().IsRegular() || !named.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
