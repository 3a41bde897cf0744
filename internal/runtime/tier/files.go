package tier

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Verdicts on programs.
const (
	proved  = "proved"  // the executable reproduced everything
	differs = "differs" // it ended otherwise than the engine
	broken  = "broken"  // it failed
)

// A verdict is what is known of a program for later processes.
type verdict struct {
	Namespace  agent.Namespace `json:"namespace,omitempty"` // absent: the default one
	Role       string          `json:"role"`
	Method     string          `json:"method"`
	Checksum   string          `json:"checksum"` // of the program
	Verdict    string          `json:"verdict"`
	Why        string          `json:"why,omitempty"`
	Executable string          `json:"executable,omitempty"` // digest of its bytes
	File       string          `json:"file,omitempty"`       // where it was
	Identity   string          `json:"identity"`             // of toolchain and daemon
	At         time.Time       `json:"at"`
}

// verdicts is a directory with a file for each verdict.
type verdicts struct{ dir string }

// fileOf names what belongs to a method: nobody can choose a role or method so that it leads elsewhere.
func fileOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// file names what belongs to the program, in the default namespace as earlier versions did.
func (k Key) file() string {
	parts := []string{k.Role, k.Method, k.Checksum}
	if k.Namespace != agent.DefaultNamespace {
		parts = append(parts, string(k.Namespace))
	}
	return fileOf(parts...)
}

// stored is the namespace as it stands in files: none for the default one.
func (k Key) stored() agent.Namespace {
	if k.Namespace == agent.DefaultNamespace {
		return ""
	}
	return k.Namespace
}

func (v *verdict) key() Key {
	return Key{cmp.Or(v.Namespace, agent.DefaultNamespace), v.Role, v.Method, v.Checksum}
}

func (v verdicts) path(k Key) string { return filepath.Join(v.dir, k.file()+".json") }

func (v verdicts) write(x verdict) error {
	return writeWhole(v.path(x.key()), x)
}

func (v verdicts) remove(k Key) error { return ignoreMissing(os.Remove(v.path(k))) }

// read returns the verdicts that were reached with the same toolchain and daemon, at most maxPrograms, and removes the others and what cannot be read.
func (v verdicts) read(identity string) ([]verdict, error) {
	entries, err := os.ReadDir(v.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []verdict
	for _, e := range entries {
		path := filepath.Join(v.dir, e.Name())
		data, err := os.ReadFile(path)
		var x verdict
		if err != nil || json.Unmarshal(data, &x) != nil || x.Identity != identity || path != v.path(x.key()) {
			_ = os.Remove(path) // at worst it is looked at again
			continue
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b verdict) int { return cmp.Compare(b.At.UnixNano(), a.At.UnixNano()) })
	return all[:min(len(all), maxPrograms/2)], nil
}

// writeWhole writes the value so that the file is whole or absent, whatever happens.
func writeWhole(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // nothing names it
	}
	return err
}
