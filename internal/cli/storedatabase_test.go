package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A database is selected by a flag, the environment or a file. A password on the command line is refused, and no
// message repeats one.
func TestDatabaseNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "store")
	if err := os.WriteFile(file,
		[]byte("postgres://u:s3cret@pool/name?pgbouncer=true\npostgres://u:s3cret@db:5433/name\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url, file, dir string
		env                  map[string]string
		address, shown       string
		refused              string
	}{
		{name: "nothing"},
		{name: "a flag", url: "postgres://u@db/name", address: "postgres://u@db/name", shown: "postgres://db/name"},
		{name: "a password", url: "postgres://u:s3cret@db/name", refused: "RECURGENT_STORE"},
		{name: "a password as a parameter", url: "postgres://u@db/name?password=s3cret", refused: "RECURGENT_STORE"},
		{name: "no URL", url: "s3cret", refused: "not a URL"},
		{name: "the environment", env: map[string]string{"RECURGENT_STORE": "postgres://u:s3cret@db/name"},
			address: "postgres://u:s3cret@db/name", shown: "postgres://db/name"},
		{name: "the environment, and a directory", dir: "/var/lib/x",
			env: map[string]string{"RECURGENT_STORE": "postgres://u@db/name"}},
		{name: "past a pooler", env: map[string]string{"RECURGENT_STORE": "postgres://u@pool/name?pgbouncer=true",
			"RECURGENT_STORE_DIRECT": "postgres://u:s3cret@db/name"},
			address: "postgres://u:s3cret@db/name", shown: "postgres://db/name"},
		{name: "a flag beside the environment", url: "postgres://u@other/name",
			env:     map[string]string{"RECURGENT_STORE_DIRECT": "postgres://u@db/name"},
			address: "postgres://u@other/name", shown: "postgres://other/name"},
		{name: "disk", env: map[string]string{"RECURGENT_STORE": "disk"}},
		{name: "a file", file: file, address: "postgres://u:s3cret@db:5433/name", shown: "postgres://db:5433/name"},
		{name: "a file that is missing", file: file + "x", refused: "store-file"},
	} {
		sh := Shell{Env: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
		address, shown, err := databaseFlags{&c.url, &c.file}.named(sh, c.dir)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: got %v, want a refusal with %q and without the password", c.name, err, c.refused)
			}
			continue
		}
		if err != nil || address != c.address || shown != c.shown {
			t.Errorf("%s: got %q, %q, %v, want %q, %q", c.name, address, shown, err, c.address, c.shown)
		}
	}
}
