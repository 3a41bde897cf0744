package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A document is one JSON file, replaced as a whole. Each says its schema version, and the last journal entry (lsn)
// which it includes, so that replaying entries onto it is idempotent.
type head struct {
	SchemaVersion int    `json:"schema_version"`
	LSN           uint64 `json:"lsn"`
}

// errCorrupt is what reading a document that was set aside returns.
var errCorrupt = errors.New("corrupt, set aside")

// newerError says that a file was written by a newer recurgentd.
type newerError struct {
	name    string
	version int
}

func (e *newerError) Error() string {
	return fmt.Sprintf("%s has schema version %d, this recurgentd reads up to %d: use the newer one, or restore a backup", e.name, e.version, agent.SchemaVersion)
}

// writeDoc writes a document in the form for people.
func (s *Store) writeDoc(name string, doc any) error {
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return s.files.Replace(name, append(data, '\n'))
}

// read reads a document into doc. An older schema version is migrated, after a backup. What does not parse, or does
// not pass check, is set aside: errCorrupt. A newer one stays where it is: *newerError. fs.ErrNotExist when there is
// no file.
func (s *Store) read(name string, doc any, check func() error) error {
	data, err := s.fs.ReadFile(name)
	if errors.Is(err, syscall.EISDIR) {
		return s.quarantine(name, err)
	}
	if err != nil {
		return err
	}
	return s.decode(name, data, doc, check)
}

func (s *Store) decode(name string, data []byte, doc any, check func() error) error {
	h := head{}
	err := json.Unmarshal(data, &h)
	if err == nil && h.SchemaVersion > agent.SchemaVersion {
		return &newerError{name, h.SchemaVersion}
	}
	if err == nil && h.SchemaVersion < agent.SchemaVersion {
		data, err = s.migrate(name, data, h.SchemaVersion)
		var refused *migrationError
		if err != nil && !errors.As(err, &refused) {
			return err // the disk, not the file
		}
	}
	if err == nil {
		err = json.Unmarshal(data, doc)
	}
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		return s.quarantine(name, err)
	}
	return nil
}

// quarantine sets a file aside, beside itself, and counts it. It returns errCorrupt with the cause.
func (s *Store) quarantine(name string, cause error) error {
	aside := fmt.Sprintf("%s.corrupt-%s", name, s.stamp())
	if err := s.fs.Rename(name, aside); err != nil {
		return fmt.Errorf("%s is corrupt (%w) and cannot be set aside: %w", name, cause, err)
	}
	if err := s.fs.SyncDir(path.Dir(name)); err != nil {
		return err
	}
	s.quarantined.Add(1)
	s.log.Warn().Str("file", name).Str("aside", aside).AnErr("cause", cause).Msg("a corrupt file was set aside")
	return fmt.Errorf("%s: %w: %w", name, errCorrupt, cause)
}

// stampFormat is a time in the name of a file.
const stampFormat = "20060102T150405.000Z"

// stamp returns the time for the name of a file; a counter tells apart those of the same moment.
func (s *Store) stamp() string {
	return fmt.Sprintf("%s-%d", s.now().UTC().Format(stampFormat), s.asides.Add(1))
}

// reportDamage tells, once a file, that lines of it cannot be read: they are left out of what is read, and stay where they
// are until a repair sets them aside.
func (s *Store) reportDamage(name string) {
	if _, told := s.damaged.LoadOrStore(name, true); told {
		return
	}
	s.quarantined.Add(1)
	s.log.Error().Str("file", name).Msg("lines of a file are damaged and left out; recurgentd store repair sets them aside")
}

// reportLost logs that a file is shorter than it was.
func (s *Store) reportLost(name string, bytes int64) {
	s.quarantined.Add(1)
	s.log.Error().Str("file", name).Int64("bytes", bytes).Msg("the end of a file is lost")
}

func isCorruptName(name string) bool { return strings.Contains(name, ".corrupt-") }

// migrationError says why a document of an older version cannot be brought up to date.
type migrationError struct{ err error }

func (e *migrationError) Error() string { return "migration: " + e.err.Error() }
func (e *migrationError) Unwrap() error { return e.err }

// migrate brings a document of an older schema version up to date. The old text is kept in backup/ first.
func (s *Store) migrate(name string, data []byte, version int) ([]byte, error) {
	next, err := migrateDocument(name, data, version)
	if err != nil {
		return nil, &migrationError{err}
	}
	backup := fmt.Sprintf("%s/%s.v%d-%s", backupDir, strings.ReplaceAll(name, "/", "__"), version, s.stamp())
	if err := s.fs.Mkdir(backupDir); err != nil {
		return nil, err
	}
	if err := s.files.Replace(backup, data); err != nil {
		return nil, err
	}
	s.log.Info().Str("file", name).Str("backup", backup).Int("from", version).Int("to", agent.SchemaVersion).Msg("migrated a file of an older schema version")
	return next, s.files.Replace(name, next)
}

const backupDir = "backup"

// migrations lead from version i to i+1.
//
// Version 0 is seed 001's sample: files without schema_version or with 0, whose artifacts give no code per generation.
func migrateDocument(name string, data []byte, version int) ([]byte, error) {
	migrations := []func(name string, doc map[string]json.RawMessage) error{migrate0}
	if version < 0 {
		return nil, fmt.Errorf("schema version %d", version)
	}
	doc := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	for v := version; v < agent.SchemaVersion; v++ {
		if err := migrations[v](name, doc); err != nil {
			return nil, err
		}
		doc["schema_version"] = json.RawMessage(fmt.Sprint(v + 1))
	}
	return json.MarshalIndent(doc, "", "  ")
}

func migrate0(name string, doc map[string]json.RawMessage) error {
	if !strings.HasPrefix(name, "tools/") || doc["method_name"] == nil || doc["current_generation"] != nil {
		return nil
	}
	whole, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var a agent.Artifact
	if err := json.Unmarshal(whole, &a); err != nil {
		return err
	}
	g := agent.Generation{}
	if len(a.Generations) > 0 && a.Generations[0] != nil {
		g = *a.Generations[0]
	}
	if g.ID == "" {
		g.ID, g.Trigger, g.CreatedAt = "gen-1", "initial_forge", a.CreatedAt
	}
	g.Code, g.CodeChecksum, g.Dependencies = a.Code, a.CodeChecksum, a.Dependencies
	g.ContractFingerprint, g.CheckedFingerprint = a.ContractFingerprint, a.ContractFingerprint
	g.PromptVersion, g.RuntimeVersion, g.Model = a.PromptVersion, a.RuntimeVersion, a.Model
	g.SuccessCount, g.IntrinsicFailureCount, g.AdaptiveFailureCount, g.ExtrinsicFailureCount = a.SuccessCount, a.IntrinsicFailureCount, a.AdaptiveFailureCount, a.ExtrinsicFailureCount
	g.Cacheable, g.CacheabilityReason = a.Cacheable, a.CacheabilityReason
	var n int
	if _, err := fmt.Sscanf(g.ID, "gen-%d", &n); err != nil {
		n = 1
	}
	for key, v := range map[string]any{"current_generation": g.ID, "history": []agent.Generation{g}, "sequence": n, "revision": 1} {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		doc[key] = text
	}
	if a.LifecycleState == "" {
		doc["lifecycle_state"] = json.RawMessage(`"` + agent.StateCandidate + `"`)
	}
	return nil
}
