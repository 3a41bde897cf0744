package disk

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// keepPrograms keeps the texts of new generations until they are written. The caller holds shared.mu.
func (p *artifacts) keepPrograms(changes []agent.ArtifactChange) {
	for _, c := range changes {
		for _, g := range []*agent.Generation{c.Generation, c.Restore} {
			if g != nil {
				p.programs[g.CodeChecksum] = g.Code
			}
		}
	}
}

// program returns the program text with that checksum, or store.ErrNotFound. A file with a wrong checksum is moved
// aside.
func (p *artifacts) program(checksum string) (string, error) {
	name, ok := programFile(checksum)
	if !ok {
		return "", store.ErrNotFound
	}
	p.n.mu.RLock()
	code, pending := p.programs[checksum]
	p.n.mu.RUnlock()
	if pending {
		return code, nil
	}
	data, err := p.n.files.ReadFile(name)
	if vfs.NotExist(err) {
		return "", store.ErrNotFound
	}
	if err != nil && !vfs.WrongKind(err) {
		return "", err
	}
	if err == nil && agent.Checksum(string(data)) == checksum {
		return string(data), nil
	}
	if err := p.n.files.moveAside(name, errWrongChecksum); err != nil {
		return "", err
	}
	return "", store.ErrNotFound
}

var errWrongChecksum = errors.New("the checksum is wrong")

// programFile returns the name of a program's file. ok is false for a checksum of another kind; such a program has no
// file.
func programFile(checksum string) (name string, ok bool) {
	sum, ok := strings.CutPrefix(checksum, "sha256:")
	if !ok || len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return "", false
	}
	return "programs/" + sum + ".go", true
}

// eachProgram calls visit with the files of programs. intact reports whether the text has the checksum in the file's
// name.
func (f *files) eachProgram(visit func(name, checksum string, intact bool) error) error {
	names, err := f.list("programs")
	if err != nil {
		return err
	}
	for _, name := range names {
		sum, ok := strings.CutSuffix(name, ".go")
		if !ok {
			continue
		}
		name, checksum := "programs/"+name, "sha256:"+sum
		data, err := f.ReadFile(name)
		if err != nil && !vfs.WrongKind(err) {
			return err
		}
		if err := visit(name, checksum, err == nil && agent.Checksum(string(data)) == checksum); err != nil {
			return err
		}
	}
	return nil
}

// writePrograms writes the files of new programs.
func (p *artifacts) writePrograms(programs map[string]string) error {
	if len(programs) == 0 {
		return nil
	}
	f := p.n.files
	if err := f.makeDir("programs"); err != nil {
		return err
	}
	for _, sum := range slices.Sorted(maps.Keys(programs)) {
		name, ok := programFile(sum)
		if !ok {
			continue
		}
		if _, err := f.Stat(name); err == nil {
			continue
		}
		if err := f.ReplaceUnsynced(name, []byte(programs[sum])); err != nil {
			return err
		}
	}
	if err := f.SyncDir("programs"); err != nil {
		return err
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	for sum := range programs {
		delete(p.programs, sum)
	}
	return nil
}

// Program is part of store.Namespace.
func (p *artifacts) Program(_ context.Context, checksum string) (string, error) {
	return p.program(checksum)
}
