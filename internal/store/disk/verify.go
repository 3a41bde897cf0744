package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
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

// streams reads the bytes of all files and compares them with files.json. It does nothing while the journal has entries
// to replay, because files.json may lag behind it.
func (v *namespaceVerifier) streams() error {
	var doc filesDoc
	ok, err := v.doc(v.files, filesFile, &doc)
	if err != nil || !ok || v.replayed {
		return err
	}
	for _, f := range doc.Files {
		name := path.Join(filesDir, f.ID)
		info, err := v.files.Stat(name)
		switch {
		case vfs.WrongKind(err): // walk reports it
		case vfs.NotExist(err), info.Dir:
			v.problem(name, "is missing")
		case err != nil:
			return err
		case info.Size != f.Bytes:
			v.problem(name, "has %d bytes, not %d", info.Size, f.Bytes)
		default:
			sum, err := v.sum(name, f.Bytes)
			if err != nil {
				return err
			}
			if f.SHA256 != "" && sum != f.SHA256 {
				v.problem(name, "does not match its digest")
			}
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// sum returns the SHA-256 of the first size bytes of a file, as hexadecimal digits.
func (v *namespaceVerifier) sum(name string, size int64) (string, error) {
	f, err := v.files.Open(name, false)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// AuditReport is the result of verifying the audit trail of one namespace.
type AuditReport struct {
	Namespace agent.Namespace
	Entries   int64 // linked entries
	Earlier   int64 // entries of an earlier version, which precede the chain
	Erased    int64 // entries whose body was erased; they count as linked, too
	// end of the chain. Somebody should note its hash elsewhere: a trail that was truncated together with its
	// checkpoint is detected only against a noted hash.
	Head chain.Head
}

// NotedHead is the hash of an audit entry as somebody noted it.
type NotedHead struct {
	Namespace agent.Namespace
	Hash      string

	found bool
}

// notedHeads reports the noted hashes that no trail has.
func (v *verifier) notedHeads() {
	for _, n := range v.noted {
		if !n.found {
			v.problem(path.Join(namespaceDir(n.Namespace), auditFile),
				"no entry of namespace %s has the noted hash %s: the trail was cut off or altered", n.Namespace, n.Hash)
		}
	}
}

// name returns the namespace of the directory.
func (v *namespaceVerifier) name() agent.Namespace {
	if v.files.dir == "." {
		return agent.DefaultNamespace
	}
	return agent.Namespace(path.Base(v.files.dir))
}

// audit verifies the chain of the trail: first up to where the last checkpoint left the file, then the entries in the
// journal.
func (v *namespaceVerifier) audit() error {
	data, _, err := v.files.readFound(auditFile)
	if err != nil {
		return err
	}
	hashes := map[string]bool{}
	c := chain.NewVerifier(v.name(), func(h chain.Head) { hashes[h.Hash] = true })
	at := v.checkpoint.of(v.name())
	if at != nil {
		data = v.toCheckpoint(c, data, at)
	}
	addLines(c, data)
	for _, a := range v.audits[v.name()] {
		if at == nil && hashes[a.Hash] {
			// The checkpoint is lost, so the journal repeats what the file has.
			continue
		}
		line, err := chain.Line(a)
		if err != nil {
			return err
		}
		c.Add(line)
	}
	for _, found := range c.Found {
		v.problem(auditFile, "%s", found)
	}
	for i := range v.noted {
		if n := &v.noted[i]; n.Namespace == v.name() && hashes[n.Hash] {
			n.found = true
		}
	}
	if c.Entries+c.Earlier > 0 {
		v.r.Audit = append(v.r.Audit, AuditReport{v.name(), c.Entries, c.Earlier, c.Erased, c.Head})
	}
	return nil
}

// toCheckpoint adds the lines that the last checkpoint covers and returns the rest, or nil if the journal has the same
// entries.
func (v *namespaceVerifier) toCheckpoint(c *chain.Verifier, data []byte, at *checkpointed) (rest []byte) {
	known := min(at.Audit, int64(len(data)))
	addLines(c, data[:known])
	switch {
	case at.Audit > known:
		v.problem(auditFile, "has %d bytes; the last checkpoint left %d", known, at.Audit)
	case at.AuditHead != nil && c.Head != *at.AuditHead:
		v.problem(auditFile, "ends with entry %d (%s); the last checkpoint left it at entry %d (%s)", c.Head.Seq,
			c.Head.Hash, at.AuditHead.Seq, at.AuditHead.Hash)
	}
	if v.replayed {
		return nil
	}
	rest = data[known:]
	if len(bytes.TrimSpace(rest)) > 0 {
		v.problem(auditFile, "%d bytes follow the end that the last checkpoint recorded", len(rest))
	}
	return rest
}

func addLines(c *chain.Verifier, data []byte) {
	for line := range bytes.Lines(data) {
		c.Add(bytes.TrimSuffix(line, []byte("\n")))
	}
}

// erasedInJournal reports whether the next start removes the directory of a namespace.
func (v *verifier) erasedInJournal(dir string) bool {
	return strings.HasSuffix(dir, erasedSuffix) || v.erased[agent.Namespace(path.Base(dir))] > 0
}
