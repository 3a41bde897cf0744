package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// Report is the result of Verify.
type Report struct {
	Sessions, Records, Artifacts, Programs, Tools, Calls int
	Journal                                              int      // number of entries that the next start replays
	Aside                                                []string // files that were moved aside before
	// broken promises, each with the name of its file
	Problems []string
	Audit    []AuditReport // of each namespace with an audit trail
	// roles and methods whose names are not in the normal form
	OtherForms []string
	// files that do not belong to a store and are not exported
	Unknown  LeftOut
	Imported // set by commands that imported the store before they verified it
}

// Verify reads all of a stopped store and reports what breaks its promises. It changes nothing. The error matches
// store.ErrInUse if a daemon uses the directory. The audit trails must contain the noted hashes.
func Verify(ctx context.Context, dir string, o Options, noted ...NotedHead) (r Report, err error) {
	if o.FS, err = fileSystem(dir, o); err != nil {
		return r, err
	}
	unlock, err := lock(dir, o.FS)
	if err != nil {
		return r, err
	}
	common, err := newShared(o)
	if err != nil {
		return r, errors.Join(err, unlock())
	}
	defer common.close()
	v := verifier{ctx: ctx, root: newFiles(common, "."), r: &r, noted: slices.Clone(noted),
		audits: map[agent.Namespace][]*agent.AuditEntry{}, erased: map[agent.Namespace]uint64{}}
	err = v.all()
	slices.Sort(r.Problems)
	return r, errors.Join(err, unlock())
}

// verifier is the state of one verification.
type verifier struct {
	ctx      context.Context // of the verification
	root     *files
	r        *Report
	replayed bool // the journal holds entries, so files may lag behind it
	noted    []NotedHead

	checkpoint checkpointDoc
	unknown    leftOuts
	audits     map[agent.Namespace][]*agent.AuditEntry // entries that are only in the journal
	// namespaces that the journal erases, with the lsn of the last entry that does
	erased map[agent.Namespace]uint64
}

func (v *verifier) problem(name, format string, args ...any) {
	v.r.Problems = append(v.r.Problems, name+": "+fmt.Sprintf(format, args...))
}

// all starts with the journal, because entries to be replayed mean that files may lag.
func (v *verifier) all() error {
	if err := v.journal(); err != nil {
		return err
	}
	names, err := v.root.list(namespacesDir)
	if err != nil {
		return err
	}
	// The next start removes these directories.
	names = slices.DeleteFunc(names, func(name string) bool { return v.erasedInJournal(name) })
	for _, dir := range append([]string{"."}, prefixed(namespacesDir, names)...) {
		n := namespaceVerifier{verifier: v, files: newFiles(v.root.shared, dir), referenced: map[string]bool{}}
		if err := n.all(); err != nil {
			return err
		}
	}
	v.notedHeads()
	err = v.walk(".")
	for _, l := range v.unknown {
		v.r.Unknown = l
	}
	return err
}

// readFound is ReadFile for a file that may be missing or of the wrong kind. walk reports the latter.
func (f *files) readFound(name string) (data []byte, found bool, err error) {
	data, err = f.ReadFile(name)
	if vfs.NotExist(err) || vfs.WrongKind(err) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// prefixed returns the names with the directory in front.
func prefixed(dir string, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = path.Join(dir, name)
	}
	return out
}

// journal reads the checkpoint and all entries after it.
func (v *verifier) journal() error {
	if _, err := v.doc(v.root, checkpointFile, &v.checkpoint); err != nil {
		return err
	}
	cp := &v.checkpoint
	segments, err := wal.Segments(v.root, journalDir)
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	for _, seg := range segments {
		_, gaps, err := seg.Read(v.root, func(lsn uint64, text []byte) error {
			if lsn <= cp.LSN {
				return nil
			}
			v.r.Journal++
			e, err := decodeEntry(text)
			if err != nil {
				v.problem(seg.Name, "entry %d: %v", lsn, err)
				return nil
			}
			if e.Audit != nil {
				v.audits[e.name()] = append(v.audits[e.name()], e.Audit)
			}
			if e.Erase != "" {
				v.erased[e.Erase] = lsn
			}
			return nil
		})
		if vfs.WrongKind(err) {
			continue // walk reports it
		}
		if err != nil {
			return err
		}
		for _, g := range gaps {
			if g.To > cp.LSN+1 {
				v.problem(seg.Name, "entries %d to %d are damaged", g.From, g.To-1)
			}
		}
	}
	v.replayed = v.r.Journal > 0
	return nil
}

// doc reads a document. ok is false if it is missing or has a problem, which is reported.
func (v *verifier) doc(f *files, name string, doc any) (ok bool, err error) {
	data, found, err := f.readFound(name)
	if !found {
		return false, err
	}
	h := head{}
	if err := json.Unmarshal(data, &h); err != nil {
		v.problem(f.path(name), "does not parse: %v", err)
		return false, nil
	}
	if h.SchemaVersion < agent.SchemaVersion || h.SchemaVersion > versionOf(name) {
		v.problem(f.path(name), "schema version %d", h.SchemaVersion)
		return false, nil
	}
	if err := json.Unmarshal(data, doc); err != nil {
		v.problem(f.path(name), "does not parse: %v", err)
		return false, nil
	}
	return true, nil
}

// walk lists files that were moved aside and reports entries that are neither files nor directories.
func (v *verifier) walk(dir string) error {
	names, err := v.root.list(dir)
	if err != nil {
		return err
	}
	for _, name := range prefixed(dir, names) {
		if isCorruptName(path.Base(name)) {
			v.r.Aside = append(v.r.Aside, name)
			continue
		}
		info, err := v.root.Stat(name)
		k, _, _ := kindOf(name)
		switch {
		case vfs.WrongKind(err) && (k != nil || holdsPrimary(name)):
			v.problem(name, "%v", err)
		case err == nil && info.Dir && name != store.DerivedDir:
			if err := v.walk(name); err != nil {
				return err
			}
		case k == nil && !info.Dir && !vfs.NotExist(err) && whyLeft(name) == leftUnknown:
			v.unknown.add(leftUnknown, name)
		}
	}
	return nil
}
