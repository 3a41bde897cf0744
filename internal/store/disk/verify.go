package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// Report is what Verify found.
type Report struct {
	Sessions, Records, Artifacts, Programs, Tools, Calls int
	Journal                                              int      // entries that the next start replays
	Aside                                                []string // files that were set aside before
	Problems                                             []string // what breaks a promise, each with its file
}

// Verify walks all of a stopped store and says what breaks its promises. It changes nothing. store.ErrInUse when a
// daemon holds the directory.
func Verify(ctx context.Context, dir string, o Options) (r Report, err error) {
	if o.FS == nil {
		if o.FS, err = vfs.Dir(dir); err != nil {
			return r, err
		}
	}
	unlock, err := lock(dir, o.FS)
	if err != nil {
		return r, err
	}
	v := verifier{ctx: ctx, fs: o.FS, r: &r, programs: map[string]bool{}}
	err = v.all()
	return r, errors.Join(err, unlock())
}

type verifier struct {
	ctx      context.Context // of one walk, which this is all the state of
	fs       vfs.FS
	r        *Report
	programs map[string]bool // that artifacts refer to
	pending  bool            // the journal holds entries: files may lawfully be behind it
}

func (v *verifier) problem(name, format string, args ...any) {
	v.r.Problems = append(v.r.Problems, name+": "+fmt.Sprintf(format, args...))
}

func (v *verifier) all() error {
	for _, walk := range []func() error{v.journal, v.documents, v.artifacts, v.texts, v.sessions, v.lines, v.aside} {
		if err := walk(); err != nil {
			return err
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
	}
	slices.Sort(v.r.Problems)
	return nil
}

// list is empty for a directory that is not there.
func (v *verifier) list(dir string) ([]string, error) {
	names, err := v.fs.List(dir)
	if vfs.NotExist(err) {
		return nil, nil
	}
	return names, err
}

// doc reads a document; ok is false when there is none or a problem was noted.
func (v *verifier) doc(name string, doc any) (ok bool, err error) {
	data, err := v.fs.ReadFile(name)
	if vfs.NotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h := head{}
	if err := json.Unmarshal(data, &h); err != nil {
		v.problem(name, "does not parse: %v", err)
		return false, nil
	}
	if h.SchemaVersion != agent.SchemaVersion {
		v.problem(name, "schema version %d", h.SchemaVersion)
		return false, nil
	}
	if err := json.Unmarshal(data, doc); err != nil {
		v.problem(name, "does not parse: %v", err)
		return false, nil
	}
	return true, nil
}

func (v *verifier) journal() error {
	var cp checkpointDoc
	if _, err := v.doc(checkpointFile, &cp); err != nil {
		return err
	}
	segments, err := wal.Segments(v.fs, journalDir)
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	for _, seg := range segments {
		_, gaps, err := seg.Read(v.fs, func(lsn uint64, text []byte) error {
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
	v.pending = v.r.Journal > 0
	return nil
}

func (v *verifier) documents() error {
	var reg registryDoc
	ok, err := v.doc(registryFile, &reg)
	if err != nil {
		return err
	}
	if ok {
		v.r.Tools = len(reg.Tools)
		if err := checkRegistry(&reg); err != nil {
			v.problem(registryFile, "%v", err)
		}
	}
	var pol policyDoc
	if ok, err = v.doc(policyFile, &pol); err != nil {
		return err
	} else if ok {
		if _, err := decodePolicy(pol.Policy); err != nil {
			v.problem(policyFile, "%v", err)
		}
	}
	var pat patternsDoc
	var con contentDoc
	if _, err := v.doc(patternsFile, &pat); err != nil {
		return err
	}
	_, err = v.doc(contentFile, &con)
	return err
}

func (v *verifier) artifacts() error {
	found := map[string]store.Figures{}
	s := Store{fs: v.fs}
	err := s.eachArtifactFile(func(name string) error {
		doc := artifactDoc{}
		ok, err := v.doc(name, &doc)
		if err != nil || !ok {
			return err
		}
		if doc.Artifact == nil {
			v.problem(name, "holds no artifact")
			return nil
		}
		v.r.Artifacts++
		k := artifactKey{doc.Role, doc.MethodName}
		if k.file() != name {
			v.problem(name, "holds %s.%s, which belongs in %s", doc.Role, doc.MethodName, k.file())
		}
		if err := checkArtifact(doc.Artifact, k); err != nil {
			v.problem(name, "%v", err)
		}
		if sum := doc.IntrinsicFailureCount + doc.AdaptiveFailureCount + doc.ExtrinsicFailureCount; sum != doc.FailureCount {
			v.problem(name, "failure_count is %d, its classes add up to %d", doc.FailureCount, sum)
		}
		for _, g := range doc.Held() {
			if g != nil {
				v.programs[g.CodeChecksum] = true
			}
		}
		found[name] = store.FiguresOf(doc.Artifact)
		return nil
	})
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	var index indexDoc
	ok, err := v.doc(indexFile, &index)
	if err != nil || !ok || v.pending {
		return err
	}
	for role, methods := range index.Artifacts {
		for method := range methods {
			name := artifactKey{role, method}.file()
			if _, there := found[name]; !there {
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

func (v *verifier) texts() error {
	names, err := v.list("programs")
	if err != nil {
		return err
	}
	for _, name := range names {
		sum, ok := strings.CutSuffix(name, ".go")
		if !ok {
			continue
		}
		v.r.Programs++
		data, err := v.fs.ReadFile("programs/" + name)
		if err != nil {
			return err
		}
		if agent.Checksum(string(data)) != "sha256:"+sum {
			v.problem("programs/"+name, "the text is not what the name says")
		}
		delete(v.programs, "sha256:"+sum)
	}
	if !v.pending {
		for sum := range v.programs {
			if name, ok := programFile(sum); ok {
				v.problem(name, "an artifact refers to it and it is not there")
			}
		}
	}
	return nil
}

func (v *verifier) sessions() error {
	ids, err := v.list("sessions")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if err := v.session(id); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) session(id string) error {
	v.r.Sessions++
	doc := sessionDoc{}
	ok, err := v.doc(sessionFile(id), &doc)
	if err != nil {
		return err
	}
	data, err := v.fs.ReadFile(historyFile(id))
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	good, size, damaged := soundLines(data, int64(len(data)))
	v.r.Records += bytes.Count(good, []byte("\n"))
	switch {
	case damaged || len(good) != len(data):
		v.problem(historyFile(id), "lines are damaged, or out of order")
	case ok && doc.ID != id:
		v.problem(sessionFile(id), "holds the session %q", doc.ID)
	case ok && !v.pending && (size != doc.HistorySize || size != doc.SyncedRecords || int64(len(data)) != doc.SyncedBytes):
		v.problem(sessionFile(id), "says %d records in %d bytes; the history has %d in %d", doc.HistorySize, doc.SyncedBytes, size, len(data))
	case !ok && !v.pending && len(data) == 0:
		v.problem("sessions/"+id, "holds no session")
	}
	return nil
}

// lines checks that the logs' lines parse.
func (v *verifier) lines() error {
	names := []string{"calls.jsonl", auditFile}
	for _, dir := range []string{"calls", "values"} {
		found, err := v.list(dir)
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
		data, err := v.fs.ReadFile(name)
		if vfs.NotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			if len(line) > 0 && !json.Valid(line) && !(v.pending && i == bytes.Count(data, []byte("\n"))) {
				v.problem(name, "line %d does not parse", i+1)
			}
			if strings.HasPrefix(name, "calls") && len(line) > 0 {
				v.r.Calls++
			}
		}
	}
	return nil
}

// aside lists what was set aside, everywhere but beside sessions, where the session's own walk would be needed.
func (v *verifier) aside() error {
	var walk func(dir string) error
	walk = func(dir string) error {
		names, err := v.list(dir)
		if err != nil {
			return err
		}
		for _, base := range names {
			name := path.Join(dir, base)
			if isCorruptName(base) {
				v.r.Aside = append(v.r.Aside, name)
				continue
			}
			if info, err := v.fs.Stat(name); err == nil && info.Dir {
				if err := walk(name); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return walk(".")
}

// Repair opens a stopped store, which replays its journal, sets aside what cannot be read, and makes again what is
// derived: the index of the artifacts, the texts of their programs, the indexes of the logs. Then it verifies.
func Repair(ctx context.Context, dir string, o Options) (Report, error) {
	s, err := Open(dir, o)
	if err != nil {
		return Report{}, err
	}
	if err := errors.Join(s.repair(ctx), s.close()); err != nil {
		return Report{}, err
	}
	return Verify(ctx, dir, o)
}

func (s *Store) repair(ctx context.Context) error {
	s.mu.Lock()
	for _, role := range s.ranking.Roles() {
		for _, m := range s.ranking.Methods(role) {
			s.ranking.DropArtifact(role, m)
		}
	}
	err := s.rebuildIndex()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.mu.RLock()
	roles := s.ranking.Roles()
	s.mu.RUnlock()
	for _, role := range roles {
		list, err := s.ListArtifacts(ctx, role)
		if err != nil {
			return err
		}
		s.mu.Lock()
		for _, a := range list {
			for _, g := range a.Held() {
				s.programs[g.CodeChecksum] = g.Code
			}
		}
		s.mu.Unlock()
	}
	names, err := s.fs.List("programs")
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	for _, name := range names {
		if sum, ok := strings.CutSuffix(name, ".go"); ok {
			data, err := s.fs.ReadFile("programs/" + name)
			if err != nil {
				return err
			}
			if agent.Checksum(string(data)) != "sha256:"+sum {
				if err := s.quarantine("programs/"+name, errors.New("the checksum is wrong")); !errors.Is(err, errCorrupt) {
					return err
				}
			}
		}
	}
	if err := s.loadIDs(); err != nil {
		return err
	}
	s.mu.RLock()
	ids := slices.Clone(s.ids)
	s.mu.RUnlock()
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.repairSession(id); err != nil {
			return err
		}
	}
	return s.repairLines()
}

// repairSession reads a session as recovery does, line by line, and has its document written again.
func (s *Store) repairSession(id string) error {
	x, err := s.session(id)
	if errors.Is(err, store.ErrNotFound) {
		if info, err := s.fs.Stat(sessionDir(id)); err == nil && info.Dir {
			aside := fmt.Sprintf("%s/%s.corrupt-%s", "sessions", id, s.stamp())
			return errors.Join(s.fs.Rename(sessionDir(id), aside), s.fs.SyncDir("sessions"))
		}
		return nil
	}
	if err != nil {
		return err
	}
	info, err := s.fs.Stat(historyFile(id))
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	x.mu.RLock()
	size, bytes := x.size, x.bytes
	settled := len(x.pending) == 0
	x.mu.RUnlock()
	if !settled {
		return nil
	}
	x.mu.Lock()
	x.synced = info.Size // every line is looked at as one that was known to be there
	err = s.findEnd(x, info.Size)
	if x.size != size || x.bytes != bytes {
		x.dirty = true
	}
	if x.dirty {
		x.synced, x.sure = 0, 0 // synced anew
		x.meta.HistorySize = x.size
	}
	changed := x.dirty
	x.mu.Unlock()
	if err != nil || !changed {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched[id] = x
	return nil
}

// repairLines drops the lines of the logs that do not parse, with a copy set aside, and the logs' indexes, which are
// made again when they are asked for.
func (s *Store) repairLines() error {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	s.checkpointLSN = ^uint64(0) // there is something to write in any case
	aside := func(name string) error {
		if err := s.quarantine(name, errors.New("lines that do not parse")); !errors.Is(err, errCorrupt) {
			return err
		}
		return nil
	}
	if err := errors.Join(s.callLog.Repair(aside), s.values.Repair(aside)); err != nil {
		return err
	}
	return s.repairAudit()
}

// repairAudit drops the lines of the audit trail that do not parse, with a copy set aside. The caller holds flushMu.
func (s *Store) repairAudit() error {
	data, err := s.fs.ReadFile(auditFile)
	if vfs.NotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	good := make([]byte, 0, len(data))
	for line := range bytes.SplitSeq(data[:min(int64(len(data)), s.auditBytes)], []byte("\n")) {
		if len(line) > 0 && json.Unmarshal(line, &agent.AuditEntry{}) == nil {
			good = append(append(good, line...), '\n')
		}
	}
	if int64(len(good)) == s.auditBytes {
		return nil
	}
	if err := s.quarantine(auditFile, errors.New("lines that do not parse")); !errors.Is(err, errCorrupt) {
		return err
	}
	if err := s.files.Replace(auditFile, good); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auditBytes = int64(len(good))
	return nil
}
