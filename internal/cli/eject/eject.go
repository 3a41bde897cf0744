// Package eject writes the programs of tools as a Go module that needs nothing of this project, and reads such a directory again.
//
// A module appears whole or not at all, in a directory that was empty or missing. Nothing in it is a secret that the daemon masks: cases that hold
// one are left out and named. The package knows nothing of daemons; what it reads and writes may be hostile, and it parses no program.
package eject

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// Format is the version of the manifest.
const Format = 1

// ManifestFile is the name of the manifest in a module.
const ManifestFile = "eject.json"

// Manifest says what a module holds.
type Manifest struct {
	Format  int       `json:"format"`
	Tools   []Tool    `json:"tools"`
	Methods []Program `json:"methods"`
	Missing []string  `json:"missing"`  // roles that the programs call and that are not in the module
	LeftOut []LeftOut `json:"left_out"` // cases that are no tests of the module
}

// Tool is the contract of a role.
type Tool struct {
	Role string `json:"role"`
	agent.Contract
	Methods map[string]agent.Contract `json:"methods,omitempty"`
}

// Program is the program of a method with its evidence.
type Program struct {
	Role      string           `json:"role"`
	Method    string           `json:"method"`
	Dir       string           `json:"dir"` // below the module: tools/NAME
	Interface *agent.Interface `json:"interface,omitempty"`

	Code     string                     `json:"-"`
	Examples []agent.Example            `json:"-"` // active ones
	Effects  map[string]json.RawMessage `json:"-"` // recorded, of examples by id
	Fixtures []agent.Fixture            `json:"-"`
	// stored ones that the cases read, by id; those that are gone are not there
	Files map[string]File `json:"-"`
}

// LeftOut is a case that is no test of the module, with the reason.
type LeftOut struct {
	Role   string `json:"role"`
	Method string `json:"method"`
	Case   string `json:"case"`
	Reason string `json:"reason"`
}

// ErrNotEmpty says that the directory to write holds something.
var ErrNotEmpty = errors.New("the directory is not empty")

// Write writes a module to dir, which must be missing or empty. rules say what is a secret (the policy's redact_keys). It sets the
// directories of the methods and what was left out.
func Write(dir string, m *Manifest, rules *mask.Rules) error {
	if err := Vacant(dir); err != nil {
		return err
	}
	files, err := module(m, rules)
	if err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), ".eject-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for name, text := range files {
		path := filepath.Join(work, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // which removes empty directories only
		return fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	return os.Rename(work, dir)
}

// Vacant returns nil where dir is missing or an empty directory.
func Vacant(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s: is no directory", dir)
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	return err
}

// module makes the files of a module, by slash-separated path.
func module(m *Manifest, rules *mask.Rules) (map[string]string, error) {
	m.Format = Format
	slices.SortFunc(m.Methods, func(a, b Program) int {
		return slices.Compare([]string{a.Role, a.Method}, []string{b.Role, b.Method})
	})
	files := map[string]string{}
	taken := map[string]bool{}
	for i := range m.Methods {
		x := &m.Methods[i]
		if err := compilable(x.Code); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", x.Role, x.Method, err)
		}
		x.Dir = "tools/" + dirName(x.Role, x.Method, taken)
		files[x.Dir+"/program.go"] = strings.TrimRight(x.Code, "\n") + "\n"
		examples, recorded, contents, left := x.cases(rules)
		m.LeftOut = append(m.LeftOut, left...)
		files[x.Dir+"/examples.json"] = indented(examples)
		if !recorded.empty() {
			files[x.Dir+"/recorded.json"] = indented(recorded)
		}
		for name, content := range contents {
			files[x.Dir+"/"+name] = content
		}
	}
	if m.LeftOut == nil {
		m.LeftOut = []LeftOut{}
	}
	if m.Missing == nil {
		m.Missing = []string{}
	}
	files[ManifestFile] = indented(m)
	files["tools/tools.go"] = toolsText(m)
	files["README.md"] = readmeText(m)
	return files, fixedFiles(files)
}

// indented is the JSON text of a document of ours.
func indented(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic("a document has no JSON form: " + err.Error()) // values of the daemon are valid JSON
	}
	return b.String()
}
