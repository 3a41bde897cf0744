package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// An Addition names a namespace of an export that is to be added to a store.
type Addition struct {
	Name  agent.Namespace
	Audit *agent.AuditEntry // entry of the import for the audit trail of the default namespace; nil means none
}

// ImportNamespace adds one namespace of an export to the store in the directory, whose daemon must be stopped. The
// namespace keeps its name and is added completely or not at all. The error matches store.ErrExists if the store has a
// namespace of that name, and store.ErrNotFound if the export has none. The content of the export is first written to a
// temporary directory.
func ImportNamespace(ctx context.Context, dir string, r io.Reader, o Options, add Addition) (in Imported, err error) {
	name := add.Name
	if err := name.Validate(); err != nil {
		return in, err
	}
	temp, err := os.MkdirTemp("", "recurgent-import-")
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	s, err := Open(dir, o)
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if name == agent.DefaultNamespace || s.have(name) {
		return in, fmt.Errorf("%w: namespace %s", store.ErrExists, name)
	}
	from := filepath.Join(temp, "store")
	if in, err = Import(ctx, from, r, o, nil); err != nil {
		return in, err
	}
	// After a crash the next start removes the directory, because its name is that of an erased namespace.
	aside := namespaceDir(name) + erasedSuffix
	if err := Fill(ctx, filepath.Join(dir, aside), o,
		func(give func(*store.Item) error) error { return Items(ctx, from, o, name, give) }); err != nil {
		return in, err
	}
	if err := s.adopt(aside, name); err != nil {
		return in, err
	}
	in.Sealed = s.namespace(name).connections.sealed()
	return in, s.note(ctx, add.Audit)
}

// adopt moves a namespace from a store in the directory aside into this store. It belongs to this store from the rename
// on; the checkpoint then records the rest.
func (s *Store) adopt(aside string, name agent.Namespace) error {
	var filled checkpointDoc
	if _, err := readOptional(newFiles(s.shared, aside), checkpointFile, &filled, nil); err != nil {
		return err
	}
	s.flusher.mu.Lock()
	defer s.flusher.mu.Unlock()
	if err := s.root.Rename(path.Join(aside, namespaceDir(name)), namespaceDir(name)); err != nil {
		return err
	}
	s.mu.Lock()
	s.spaces.idle[name] = filled.of(name)
	s.mu.Unlock()
	if _, _, err := s.load(name); err != nil {
		return err
	}
	s.flusher.forced = true
	return errors.Join(s.root.SyncDir(namespacesDir), s.flusher.checkpointLocked(), s.root.removeTree(aside))
}
