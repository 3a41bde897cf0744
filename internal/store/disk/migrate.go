package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// migrationError is the reason why a document of an older version cannot be migrated.
type migrationError struct{ err error }

func (e *migrationError) Error() string { return "migration: " + e.err.Error() }
func (e *migrationError) Unwrap() error { return e.err }

// migrate migrates a document to the current schema version and replaces its file. The old text is kept in backup/.
func (f *files) migrate(name string, data []byte, version int) ([]byte, error) {
	next, err := migrateDocument(name, data, version)
	if err != nil {
		return nil, &migrationError{err}
	}
	backup := fmt.Sprintf("%s/%s.v%d-%s", backupDir, strings.ReplaceAll(name, "/", "__"), version, f.stamp())
	if err := errors.Join(f.Mkdir(backupDir), f.SyncDir(".")); err != nil {
		return nil, err
	}
	if err := f.Replace(backup, data); err != nil {
		return nil, err
	}
	f.shared.log.Info().Str("file", f.path(name)).Str("backup", f.path(backup)).Int("from", version).Int("to",
		agent.SchemaVersion).Msg("migrated a file of an older schema version")
	return next, f.Replace(name, next)
}

// backupDir holds the old texts of migrated documents.
const backupDir = "backup"

// migrateDocument applies the steps from a version to the current one. Step i leads from version i to i+1.
//
// Documents of version 0 have no schema_version, or 0, and their artifacts have no code in the generations.
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

// migrate0 moves the code of an artifact into its only generation.
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
	g := firstGeneration(&a)
	var n int
	if _, err := fmt.Sscanf(g.ID, "gen-%d", &n); err != nil {
		n = 1
	}
	members := map[string]any{"current_generation": g.ID, "history": []agent.Generation{g}, "sequence": n,
		"revision": 1}
	if a.LifecycleState == "" {
		members["lifecycle_state"] = agent.StateCandidate
	}
	for key, v := range members {
		if doc[key], err = json.Marshal(v); err != nil {
			return err
		}
	}
	return nil
}

// firstGeneration returns a generation with the artifact's own fields.
func firstGeneration(a *agent.Artifact) agent.Generation {
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
	g.SuccessCount, g.IntrinsicFailureCount, g.AdaptiveFailureCount, g.ExtrinsicFailureCount = a.SuccessCount,
		a.IntrinsicFailureCount, a.AdaptiveFailureCount, a.ExtrinsicFailureCount
	g.Cacheable, g.CacheabilityReason = a.Cacheable, a.CacheabilityReason
	return g
}
