// Package eject writes the programs of tools as a Go module that does not depend on this project, and reads such a
// directory back.
//
// A module appears atomically, in a directory that was empty or missing. It contains no secret that the daemon masks:
// cases with one are left out and named. The package knows nothing of daemons, and parses no program. The data that it
// reads and writes may be hostile.
package eject

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// format is the version of the manifest.
const format = 1

// manifestFile is the name of the manifest in a module.
const manifestFile = "eject.json"

// Manifest describes the content of a module.
type Manifest struct {
	Format  int       `json:"format"`
	Tools   []Tool    `json:"tools"`
	Methods []Program `json:"methods"`
	Missing []string  `json:"missing"`  // roles that the programs call and that the module lacks
	LeftOut []LeftOut `json:"left_out"` // cases that are not tests of the module
}

// Tool is the contract of a role.
type Tool struct {
	Role string `json:"role"`
	agent.Contract
	Methods map[string]agent.Contract `json:"methods,omitempty"`
}

// Program is a method's program with its evidence.
type Program struct {
	Role      string           `json:"role"`
	Method    string           `json:"method"`
	Dir       string           `json:"dir"` // below the module's root: tools/NAME
	Interface *agent.Interface `json:"interface,omitempty"`

	Code     string                     `json:"-"`
	Examples []agent.Example            `json:"-"` // only active ones
	Effects  map[string]json.RawMessage `json:"-"` // recorded effects of examples, by id
	Fixtures []agent.Fixture            `json:"-"`
	// Files holds the stored files that the cases read, by id. Files that no longer exist are missing.
	Files map[string]File `json:"-"`
}

// LeftOut describes a case that is not a test of the module, with the reason.
type LeftOut struct {
	Role   string `json:"role"`
	Method string `json:"method"`
	Case   string `json:"case"`
	Reason string `json:"reason"`
}

// ErrNotEmpty means that the target directory is not empty.
var ErrNotEmpty = errors.New("the directory is not empty")

// Write writes a module to dir, which must be missing or empty. rules define secrets (the policy's redact_keys). It
// sets Dir of the methods and LeftOut in m.
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
	// In the same parent directory, so that the rename at the end is atomic.
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
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // removes empty directories only
		return fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	return os.Rename(work, dir)
}

// Vacant returns nil if dir is missing or an empty directory. The error for other content is ErrNotEmpty.
func Vacant(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	return err
}

// module returns the files of a module by slash-separated path. It sets Dir of the methods and LeftOut in m.
func module(m *Manifest, rules *mask.Rules) (map[string]string, error) {
	m.Format = format
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
	files[manifestFile] = indented(m)
	files["tools/tools.go"] = toolsText(m)
	files["README.md"] = readmeText(m)
	return files, fixedFiles(files)
}

// indented returns the indented JSON text of a document.
func indented(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic("a document has no JSON form: " + err.Error()) // unreachable: the daemon's values are valid JSON
	}
	return b.String()
}

// maxDirName bounds the readable part of a directory's name, in bytes.
const maxDirName = 50

// dirName returns the name of a method's directory: role and method in lower-case ASCII. If that changes more than
// letter case, or the name is taken, it ends in eight digits of a hash.
func dirName(role, method string, taken map[string]bool) string {
	changed := false
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		changed = changed || r != ' ' && r != '-'
		return '_'
	}, role+"_"+method)
	if name[0] < 'a' || name[0] > 'z' { // the go command ignores directories that begin with _
		name = "t" + name
	}
	if len(name) > maxDirName {
		name, changed = name[:maxDirName], true
	}
	if changed || taken[name] {
		sum := sha256.Sum256([]byte(role + "\x00" + method))
		name += "_" + hex.EncodeToString(sum[:4])
	}
	taken[name] = true
	return name
}

var (
	packageClause   = regexp.MustCompile(`(?m)^package[ \t]+([\pL_][\pL_\p{Nd}]*)`)
	buildConstraint = regexp.MustCompile(`(?m)^[ \t]*//go:build`)
)

// compilable returns an error if the go command would not accept the program as a package of a module. The gate has
// checked the rest.
func compilable(code string) error {
	clause := packageClause.FindStringSubmatch(code)
	switch {
	case clause == nil:
		return errors.New("the program has no package clause on a line of its own")
	case clause[1] == "main" || strings.HasSuffix(clause[1], "_test"):
		return errors.New("the program's package is called " + clause[1] +
			", which no other package can import; rename it to tool")
	case buildConstraint.MatchString(code):
		return errors.New("the program has a build constraint; remove it")
	}
	return nil
}
