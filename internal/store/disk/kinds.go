package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/lazy"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// A kind is a kind of primary file. Primary files make up a store and cannot be derived from other files. Exports and
// imports contain only files of these kinds.
type kind struct {
	// matches names within the directory of a namespace; files of the journal exist only at the top
	named func() *regexp.Regexp
	most  int64 // largest size in bytes that an import accepts; 0 means no bound
	// returns an error if the content is not of this kind
	check func(f *files, name string) error
}

// Largest sizes in bytes of files that are read as a whole, of files that are read by line, and of program texts.
const (
	maxWhole = 512 << 20
	maxLines = 16 << 30
	maxText  = 16 << 20
)

// nameParts replaces placeholders by patterns of the names that slug, validID and stampOf return.
var nameParts = strings.NewReplacer("SLUG", `[a-z0-9_-]{1,64}`, "ID", `[A-Za-z0-9_-]{1,128}`, "STAMP",
	`[0-9A-Za-z._-]{1,160}`)

// namedLike returns a function that compiles the pattern, with placeholders of nameParts, on first use.
func namedLike(pattern string) func() *regexp.Regexp {
	return lazy.Regexp(`^(?:` + nameParts.Replace(pattern) + `)$`)
}

// kinds lists all kinds. The first one whose pattern matches a name applies.
var kinds = []kind{
	{namedLike(`policy\.json`), maxWhole,
		formOf(func(_ string, d *policyDoc) error { _, err := decodePolicy(d.Policy); return err })},
	{namedLike(`patterns\.json`), maxWhole, formOf[patternsDoc](nil)},
	{namedLike(`evidence\.json`), maxWhole, formOf[evidenceDoc](nil)},
	{namedLike(`content\.json`), maxWhole, formOf[contentDoc](nil)},
	{namedLike(`files\.json`), maxWhole, formOf(func(_ string, d *filesDoc) error { return checkFiles(d) })},
	{namedLike(`connections\.json`), maxWhole,
		formOf(func(_ string, d *connectionsDoc) error { return checkConnections(d) })},
	{namedLike(`spend\.json`), maxWhole, formOf(func(_ string, d *spendDoc) error { return checkSpend(d) })},
	{namedLike(`tools/registry\.json`), maxWhole,
		formOf(func(_ string, d *registryDoc) error { return checkRegistry(d) })},
	{namedLike(`tools/archive/registry/SLUG\.STAMP\.json`), maxWhole, formOf(isArchivedTool)},
	{namedLike(`tools/archive/SLUG/SLUG\.STAMP\.json`), maxWhole, formOf(isArchivedArtifact)},
	{namedLike(`tools/SLUG/SLUG\.json`), maxWhole, formOf(isArtifact)},
	{namedLike(`programs/unreferenced\.json`), maxWhole, formOf[prunedDoc](nil)},
	{namedLike(`programs/[0-9a-f]{64}\.go`), maxText, isProgram},
	{namedLike(`sessions/ID/session\.json`), maxWhole, formOf(isSession)},
	{namedLike(`sessions/ID/history\.jsonl`), maxLines, linesOf[recordMeta]},
	{namedLike(`(calls|calls/[0-9]{8,10})\.jsonl`), maxWhole, linesOf[agent.LogEntry]},
	{namedLike(`values/[0-9]{8,10}\.jsonl`), maxWhole, linesOf[valueLine]},
	{namedLike(`audit\.jsonl`), maxLines, linesOf[agent.AuditEntry]},
	{namedLike(`files/ID`), 0, func(*files, string) error { return nil }}, // any bytes; files.json has the digest
	{namedLike(`journal/checkpoint\.json`), maxWhole,
		formOf(func(_ string, d *checkpointDoc) error { return checkCheckpoint(d) })},
	{namedLike(`journal/[0-9]{20}\.wal`), maxWhole, isJournal},
}

// kindOf returns the kind of a file by its name relative to the store, or nil if the name is of no kind. dir is the
// directory of its namespace, and within is its name relative to dir.
func kindOf(name string) (k *kind, dir, within string) {
	dir, within = ".", name
	if rest, ok := strings.CutPrefix(name, namespacesDir+"/"); ok {
		space, in, _ := strings.Cut(rest, "/")
		if n := agent.Namespace(space); n.Validate() != nil || n == agent.DefaultNamespace ||
			strings.HasPrefix(in, journalDir+"/") {
			return nil, dir, name
		}
		dir, within = path.Join(namespacesDir, space), in
	}
	for i := range kinds {
		if kinds[i].named().MatchString(within) {
			return &kinds[i], dir, within
		}
	}
	return nil, dir, within
}

// formOf returns a check that a file is a document of the type D, in this schema version or an earlier one. The check
// returns *newerError for a later version.
func formOf[D any](check func(name string, doc *D) error) func(*files, string) error {
	return func(f *files, name string) error {
		data, err := f.ReadFile(name)
		if err != nil {
			return err
		}
		var doc D
		if data, err = f.current(name, data); err == nil {
			err = json.Unmarshal(data, &doc)
		}
		if err == nil && check != nil {
			err = check(name, &doc)
		}
		return err
	}
}

// current returns a document migrated to the current schema version. It writes nothing.
func (f *files) current(name string, data []byte) ([]byte, error) {
	h := head{}
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, err
	}
	if reads := versionOf(name); h.SchemaVersion > reads {
		return nil, &newerError{f.path(name), h.SchemaVersion, reads}
	}
	if h.SchemaVersion < agent.SchemaVersion {
		return migrateDocument(name, data, h.SchemaVersion)
	}
	return data, nil
}

// isArtifact returns an error if the document is not the artifact of its file.
func isArtifact(name string, d *artifactDoc) error {
	if d.Artifact == nil {
		return errors.New("holds no artifact")
	}
	if k := (artifactKey{role: d.Role, method: d.MethodName}); k.file() != name {
		return fmt.Errorf("holds %.80q, which belongs in %s", d.Role+"."+d.MethodName, k.file())
	}
	return d.check()
}

func isArchivedArtifact(name string, d *artifactDoc) error {
	if err := d.check(); err != nil {
		return err
	}
	return isArchivedAt(name, archived{artifact: &artifact{key: artifactKey{role: d.Role, method: d.MethodName}}})
}

func isArchivedTool(name string, d *toolDoc) error {
	return isArchivedAt(name, archived{tool: &d.Tool})
}

// isArchivedAt returns an error if what the document holds is archived under another name.
func isArchivedAt(name string, x archived) error {
	if place, _, _ := strings.Cut(name, "."); place != archivePlace(x.target()) {
		return fmt.Errorf("holds %.80q, which belongs in %s", x.target().String(), archivePlace(x.target()))
	}
	return nil
}

// isSession returns an error if the document is not the session of its directory.
func isSession(name string, d *sessionDoc) error {
	if !validID(d.ID) || sessionFile(d.ID) != name {
		return fmt.Errorf("holds the session %.80q", d.ID)
	}
	return nil
}

// isProgram returns an error if the text does not have the checksum in the file's name.
func isProgram(f *files, name string) error {
	data, err := f.ReadFile(name)
	if err != nil {
		return err
	}
	if of, _ := programFile(agent.Checksum(string(data))); of != name {
		return errWrongChecksum
	}
	return nil
}

// isJournal checks that a file holds at least one sound batch, or was never written to.
func isJournal(f *files, name string) error {
	data, err := f.ReadFile(name)
	if err != nil {
		return err
	}
	// It was reserved, but nothing was written to it.
	sound := strings.Trim(string(data[:min(len(data), 4096)]), "\x00") == ""
	_, _, err = (wal.Segment{Name: name}).Visit(data, func(lsn uint64, _ []byte) error {
		sound = true
		return checkLSN(lsn)
	})
	if err == nil && !sound {
		err = errors.New("holds no batch of entries")
	}
	return err
}

// checkLSN returns an error for numbers so high that entries would soon run out of them.
func checkLSN(lsn uint64) error {
	if lsn >= 1<<62 {
		return fmt.Errorf("has an entry %d", lsn)
	}
	return nil
}

// checkCheckpoint returns an error if a checkpoint has impossible numbers, or names that are not valid.
func checkCheckpoint(d *checkpointDoc) error {
	if err := errors.Join(checkLSN(d.LSN), checkArchived(d.Unarchived)); err != nil {
		return err
	}
	for name, at := range d.Namespaces {
		if at == nil {
			continue
		}
		if err := errors.Join(name.Validate(), checkArchived(at.Unarchived)); err != nil {
			return err
		}
	}
	return nil
}

// linesOf returns a check that a file holds JSON lines: one of them must decode as T, unless the file is empty, and
// none may be longer than maxLine.
func linesOf[T any](f *files, name string) error {
	file, err := f.Open(name, false)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil || size == 0 {
		return err
	}
	sound, longest := false, int64(0)
	err = eachLine(file, size, func(line []byte, length int64) {
		var x T
		longest = max(longest, length)
		sound = sound || json.Unmarshal(line, &x) == nil
	})
	switch {
	case err != nil:
		return err
	case longest > maxLine:
		return fmt.Errorf("has a line of %d bytes", longest)
	case !sound:
		return errors.New("has no line that can be read")
	}
	return nil
}
