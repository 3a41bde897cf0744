package rig

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// storedSchemas compiles the schemas in docs/schemas once.
var storedSchemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	all := map[string]*jsonschema.Schema{}
	for _, name := range []string{"registry", "artifact"} {
		c := jsonschema.NewCompiler()
		c.AssertFormat = true
		s, err := c.Compile(filepath.Join(Root(), "docs", "schemas", name+".schema.json"))
		if err != nil {
			return nil, err
		}
		all[name] = s
	}
	return all, nil
})

// CheckStoredFiles checks every registry and artifact below a data directory, archived artifacts included, against its
// schema, and returns the number of artifacts. It ignores files that are not JSON; other tests cover those.
func CheckStoredFiles(t *testing.T, dir string) int {
	t.Helper()
	schemas, err := storedSchemas()
	if err != nil {
		t.Fatal(err)
	}
	tools, seen := filepath.Join(dir, "tools"), 0
	err = filepath.WalkDir(tools, func(path string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && (e.IsDir() || !strings.HasSuffix(path, ".json")) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(tools, path)
		kind := "artifact"
		switch {
		case rel == "registry.json":
			kind = "registry"
		case !strings.Contains(rel, string(filepath.Separator)),
			strings.HasPrefix(filepath.ToSlash(rel), "archive/registry/"):
			return nil // the index and archived tools
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var v any
		if json.Unmarshal(data, &v) != nil {
			return nil
		}
		if err := schemas[kind].Validate(v); err != nil {
			t.Errorf("%s: %#v", rel, err)
		}
		if kind == "artifact" {
			seen++
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return seen
}
