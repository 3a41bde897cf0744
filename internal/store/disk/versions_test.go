package disk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Newer schema versions are refused with a clear error. Older ones are migrated after a backup.
func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	for _, file := range []string{registryFile, policyFile, patternsFile, contentFile, connectionsFile, spendFile,
		indexFile, checkpointFile} {
		dir, _ := filled(t)
		name := filepath.Join(dir, file)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		newer := strings.Replace(string(text), `"schema_version": 1`, `"schema_version": 9`, 1)
		if err := os.WriteFile(name, []byte(newer), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = Open(dir, testOptions(t))
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "schema version 9") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", file, err)
		}
		if kept, err := os.ReadFile(name); err != nil || string(kept) != newer {
			t.Errorf("%s was changed", file)
		}
	}
}

func TestMigrateFromTheSeed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code := "package tool // old"
	old := map[string]string{
		"tools/registry.json": `{"tools":{"web_fetcher":{"role":"web_fetcher","purpose":"fetch","usage_count":12,"created_at":"2026-02-15T00:00:00Z","last_used_at":"2026-02-15T00:00:00Z"}}}`,
		"tools/web_fetcher/fetch.json": fmt.Sprintf(
			`{"schema_version":0,"role":"web_fetcher","method_name":"fetch","contract_fingerprint":"none","prompt_version":"p","runtime_version":"r","model":"m",
			"code_checksum":%q,"code":%q,"dependencies":[],"success_count":34,"failure_count":3,"intrinsic_failure_count":1,"adaptive_failure_count":0,"extrinsic_failure_count":2,
			"created_at":"2026-02-15T00:00:00Z","last_used_at":"2026-02-15T00:00:00Z","last_repaired_at":null,"history":[{"id":"gen-3","parent_id":"gen-2","trigger":"repair:parse_error","created_at":"2026-02-15T00:00:00Z"}]}`, agent.Checksum(code), code),
	}
	for name, text := range old {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir, testOptions(t))
	ctx := context.Background()
	a, err := s.Artifact(ctx, "web_fetcher", "fetch")
	if err != nil || a.Current() == nil || a.Current().Code != code || a.SuccessCount != 34 ||
		a.NextGenerationID() != "gen-4" {
		t.Errorf("got %+v, %v", a, err)
	}
	tool, err := s.Tool(ctx, "web_fetcher")
	if err != nil || tool.UsageCount != 12 {
		t.Errorf("got %+v, %v", tool, err)
	}
	kept := 0
	for name, text := range tree(t, filepath.Join(dir, backupDir)) {
		for original, was := range old {
			if strings.HasPrefix(name, strings.ReplaceAll(original, "/", "__")) && text == was {
				kept++
			}
		}
	}
	if kept != len(old) {
		t.Errorf("got %d backups of %d files", kept, len(old))
	}
}
