package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// Report is what Verify found.
type Report struct {
	Sessions, Records, Artifacts, Programs, Tools, Calls int
	Journal                                              int      // entries that the next start replays
	Aside                                                []string // files that were moved aside before
	Problems                                             []string // what breaks a promise, each with its file
}

// Verify reads all of a stopped store and reports what breaks its promises. It changes nothing. store.ErrInUse when a
// daemon holds the directory.
func Verify(ctx context.Context, dir string, o Options) (r Report, err error) {
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
	v := verifier{ctx: ctx, root: newFiles(common, "."), r: &r}
	err = v.all()
	slices.Sort(r.Problems)
	return r, errors.Join(err, unlock())
}

// verifier walks a store.
type verifier struct {
	ctx      context.Context // of one walk, which this is all the state of
	root     *files
	r        *Report
	replayed bool // the journal holds entries: files may be behind it
}

func (v *verifier) problem(name, format string, args ...any) {
	v.r.Problems = append(v.r.Problems, name+": "+fmt.Sprintf(format, args...))
}

func (v *verifier) all() error {
	if err := v.journal(); err != nil {
		return err
	}
	names, err := v.root.list(namespacesDir)
	if err != nil {
		return err
	}
	for _, dir := range append([]string{"."}, prefixed(namespacesDir, names)...) {
		n := namespaceVerifier{verifier: v, files: newFiles(v.root.shared, dir), referenced: map[string]bool{}}
		if err := n.all(); err != nil {
			return err
		}
	}
	return v.aside(".")
}

func prefixed(dir string, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = path.Join(dir, name)
	}
	return out
}

func (v *verifier) journal() error {
	var cp checkpointDoc
	if _, err := v.doc(v.root, checkpointFile, &cp); err != nil {
		return err
	}
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
			if _, err := decodeEntry(text); err != nil {
				v.problem(seg.Name, "entry %d: %v", lsn, err)
			}
			return nil
		})
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

// doc reads a document; ok is false when there is none or it has a problem.
func (v *verifier) doc(f *files, name string, doc any) (ok bool, err error) {
	data, err := f.ReadFile(name)
	if vfs.NotExist(err) {
		return false, nil
	}
	if err != nil {
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

// aside lists what was moved aside.
func (v *verifier) aside(dir string) error {
	names, err := v.root.list(dir)
	if err != nil {
		return err
	}
	for _, name := range prefixed(dir, names) {
		if isCorruptName(path.Base(name)) {
			v.r.Aside = append(v.r.Aside, name)
			continue
		}
		if info, err := v.root.Stat(name); err == nil && info.Dir {
			if err := v.aside(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// namespaceVerifier walks a namespace.
type namespaceVerifier struct {
	*verifier
	files      *files
	referenced map[string]bool // programs that artifacts refer to
}

func (v *namespaceVerifier) all() error {
	for _, walk := range []func() error{v.documents, v.artifacts, v.programs, v.sessions, v.lines} {
		if err := walk(); err != nil {
			return err
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (v *namespaceVerifier) problem(name, format string, args ...any) {
	v.verifier.problem(v.files.path(name), format, args...)
}

func (v *namespaceVerifier) documents() error {
	var reg registryDoc
	var pol policyDoc
	for _, d := range []struct {
		name  string
		doc   any
		check func() error
	}{
		{registryFile, &reg, func() error { v.r.Tools += len(reg.Tools); return checkRegistry(&reg) }},
		{policyFile, &pol, func() error { _, err := decodePolicy(pol.Policy); return err }},
		{patternsFile, &patternsDoc{}, nil},
		{contentFile, &contentDoc{}, nil},
	} {
		ok, err := v.doc(v.files, d.name, d.doc)
		if err != nil {
			return err
		}
		if ok && d.check != nil {
			if err := d.check(); err != nil {
				v.problem(d.name, "%v", err)
			}
		}
	}
	return nil
}

func (v *namespaceVerifier) artifacts() error {
	found := map[string]bool{}
	err := eachArtifactFile(v.files, func(name string) error {
		doc := artifactDoc{}
		ok, err := v.doc(v.files, name, &doc)
		if err != nil || !ok {
			return err
		}
		if doc.Artifact == nil {
			v.problem(name, "holds no artifact")
			return nil
		}
		v.artifact(name, &doc)
		found[name] = true
		return nil
	})
	if err != nil || v.replayed {
		return err
	}
	return v.index(found)
}

func (v *namespaceVerifier) artifact(name string, doc *artifactDoc) {
	v.r.Artifacts++
	k := artifactKey{role: doc.Role, method: doc.MethodName}
	if k.file() != name {
		v.problem(name, "holds %s.%s, which belongs in %s", doc.Role, doc.MethodName, k.file())
	}
	if err := doc.check(); err != nil {
		v.problem(name, "%v", err)
	}
	if sum := doc.IntrinsicFailureCount + doc.AdaptiveFailureCount + doc.ExtrinsicFailureCount; sum != doc.FailureCount {
		v.problem(name, "failure_count is %d, its classes add up to %d", doc.FailureCount, sum)
	}
	for _, g := range doc.Held() {
		if g != nil {
			v.referenced[g.CodeChecksum] = true
		}
	}
}

// index compares the index with the artifacts that were found.
func (v *namespaceVerifier) index(found map[string]bool) error {
	var index indexDoc
	ok, err := v.doc(v.files, indexFile, &index)
	if err != nil || !ok {
		return err
	}
	for role, methods := range index.Artifacts {
		for method := range methods {
			name := artifactKey{role: role, method: method}.file()
			if !found[name] {
				v.problem(indexFile, "names %s, which is not there", name)
			}
			delete(found, name)
		}
	}
	for name := range found {
		v.problem(indexFile, "does not name %s", name)
	}
	return nil
}

func (v *namespaceVerifier) programs() error {
	names, err := v.files.list("programs")
	if err != nil {
		return err
	}
	for _, name := range names {
		sum, ok := strings.CutSuffix(name, ".go")
		if !ok {
			continue
		}
		v.r.Programs++
		data, err := v.files.ReadFile("programs/" + name)
		if err != nil {
			return err
		}
		if agent.Checksum(string(data)) != "sha256:"+sum {
			v.problem("programs/"+name, "the text is not what the name says")
		}
		delete(v.referenced, "sha256:"+sum)
	}
	if v.replayed {
		return nil
	}
	for sum := range v.referenced {
		if name, ok := programFile(sum); ok {
			v.problem(name, "an artifact refers to it and it is not there")
		}
	}
	return nil
}

func (v *namespaceVerifier) sessions() error {
	ids, err := v.files.list("sessions")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if isCorruptName(id) {
			continue
		}
		if err := v.session(id); err != nil {
			return err
		}
	}
	return nil
}

func (v *namespaceVerifier) session(id string) error {
	v.r.Sessions++
	doc := sessionDoc{}
	ok, err := v.doc(v.files, sessionFile(id), &doc)
	if err != nil {
		return err
	}
	data, err := v.files.ReadFile(historyFile(id))
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	good, size, damaged := soundLines(data, int64(len(data)))
	v.r.Records += strings.Count(string(good), "\n")
	switch {
	case damaged || len(good) != len(data):
		v.problem(historyFile(id), "lines are damaged, or out of order")
	case ok && doc.ID != id:
		v.problem(sessionFile(id), "holds the session %q", doc.ID)
	case ok && !v.replayed && (size != doc.HistorySize || size != doc.SyncedRecords || int64(len(data)) != doc.SyncedBytes):
		v.problem(sessionFile(id), "says %d records in %d bytes; the history has %d in %d", doc.HistorySize, doc.SyncedBytes, size, len(data))
	case !ok && !v.replayed && len(data) == 0:
		v.problem(sessionDir(id), "holds no session")
	}
	return nil
}

// lines checks that the lines of the logs parse.
func (v *namespaceVerifier) lines() error {
	names := []string{callLogFile, auditFile}
	for _, dir := range []string{"calls", "values"} {
		found, err := v.files.list(dir)
		if err != nil {
			return err
		}
		for _, name := range found {
			if strings.HasSuffix(name, ".jsonl") {
				names = append(names, path.Join(dir, name))
			}
		}
	}
	for _, name := range names {
		data, err := v.files.ReadFile(name)
		if vfs.NotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		v.linesOf(name, string(data))
	}
	return nil
}

func (v *namespaceVerifier) linesOf(name, data string) {
	lines := strings.Split(data, "\n")
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		if torn := v.replayed && i == len(lines)-1; !torn && !json.Valid([]byte(line)) {
			v.problem(name, "line %d does not parse", i+1)
		}
		if strings.HasPrefix(name, "calls") {
			v.r.Calls++
		}
	}
}
