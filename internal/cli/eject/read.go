package eject

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/eject/local"
	"github.com/recurgentd/recurgentd/internal/cli/examplefile"
)

// Bounds of the data read from a directory.
const (
	maxManifest = 16 << 20
	maxProgram  = 1 << 20
	maxRecorded = 64 << 20
	maxMethods  = 10_000
)

// A Stored is a method as read from a module. People may have edited its example file. Files holds the module's files
// that its examples refer to.
type Stored struct {
	Program
	File *examplefile.File // nil if there are no examples
}

// Read reads a module. It does not follow links out of the directory. The error names the file.
func Read(dir string) (*Manifest, []Stored, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	var m Manifest
	data, err := readIn(root, manifestFile, maxManifest)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; name a directory that recurgentd tools eject has written", err)
	}
	switch err := json.Unmarshal(data, &m); {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestFile), err)
	case m.Format != format:
		return nil, nil, fmt.Errorf("%s: its format is %d, but this recurgentd reads format %d",
			filepath.Join(dir, manifestFile),
			m.Format, format)
	case len(m.Methods) == 0 || len(m.Methods) > maxMethods:
		return nil, nil, fmt.Errorf("%s: %d methods, expected 1 to %d", filepath.Join(dir, manifestFile),
			len(m.Methods), maxMethods)
	}
	all := make([]Stored, 0, len(m.Methods))
	seen := map[string]bool{}
	for _, x := range m.Methods {
		s, err := readMethod(root, dir, x)
		if key := x.Role + "\x00" + x.Method; err == nil && seen[key] {
			err = fmt.Errorf("%s: %q %q appears twice", filepath.Join(dir, manifestFile), x.Role, x.Method)
		} else {
			seen[key] = true
		}
		if err != nil {
			return nil, nil, err
		}
		all = append(all, s)
	}
	return &m, all, nil
}

// readMethod reads the program of a method, its examples and their files.
func readMethod(root *os.Root, dir string, x Program) (Stored, error) {
	s := Stored{Program: x}
	if err := agent.Names(&x.Role, &x.Method); err != nil {
		return s, fmt.Errorf("%s: %w", filepath.Join(dir, manifestFile), err)
	}
	if !filepath.IsLocal(x.Dir) {
		return s, fmt.Errorf("%s: the directory %q is not below the module", filepath.Join(dir, manifestFile), x.Dir)
	}
	code, err := readIn(root, filepath.Join(x.Dir, "program.go"), maxProgram)
	if err != nil {
		return s, err
	}
	s.Code = string(code)
	name := filepath.Join(x.Dir, "examples.json")
	data, err := readIn(root, name, 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if s.File, err = examplefile.Parse(filepath.Join(dir, name), data); err != nil {
		return s, err
	}
	if s.File.Role != "" && s.File.Role != x.Role || s.File.Method != "" && s.File.Method != x.Method {
		return s, &examplefile.Error{Path: s.File.Path, Reason: "has the examples of another method: " +
			strings.ToValidUTF8(s.File.Role+"."+s.File.Method, "?")}
	}
	return s, s.readFiles(root, dir)
}

// readFiles reads the module's files that the examples refer to. Missing ones are skipped.
func (s *Stored) readFiles(root *os.Root, dir string) error {
	named := map[string]bool{}
	for _, e := range s.File.Examples {
		for _, id := range agent.FileRefs(e.JSON) {
			named[id] = true
		}
	}
	if len(named) == 0 {
		return nil
	}
	name := filepath.Join(s.Dir, "recorded.json")
	data, err := readIn(root, name, maxRecorded)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var recorded struct{ Files map[string]local.HeldFile }
	if err == nil {
		err = json.Unmarshal(data, &recorded)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	s.Files = map[string]File{}
	for id := range named {
		held, ok := recorded.Files[id]
		if !ok {
			continue
		}
		if !filepath.IsLocal(held.Path) {
			return fmt.Errorf("%s: the file %q is not below the method", filepath.Join(dir, name), held.Path)
		}
		data, err := readIn(root, filepath.Join(s.Dir, held.Path), maxFile)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		s.Files[id] = File{agent.File{ID: id, Name: held.Name, MediaType: held.MediaType, Bytes: int64(len(data)),
			SHA256: hex.EncodeToString(sum[:])}, data}
	}
	return nil
}

// readIn reads a regular file below root of at most most bytes.
func readIn(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return data, err
}
