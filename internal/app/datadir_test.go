package app

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// A data directory that others can read is closed to them, or reported if it belongs to someone else.
func TestDataDirectoryIsTightened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before fs.FileMode
		after  fs.FileMode
		says   string
	}{
		{"its own", 0o700, 0o700, ""},
		{"open to read", 0o755, 0o700, "could read"},
		{"open to enter", 0o711, 0o700, "could read"},
		{"open to write", 0o777, 0o700, "could read"},
		{"open to its group", 0o750, 0o750, "the group of the data directory"},
		{"everybody's", 0o777 | fs.ModeSticky, 0o777 | fs.ModeSticky, "name a --data-dir of its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, c.before); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			tighten(dir, zerolog.New(&log))
			info, err := os.Stat(dir)
			if err != nil || info.Mode()&^fs.ModeDir != c.after {
				t.Errorf("the mode is %v, %v, want %v", info.Mode(), err, c.after)
			}
			if said := log.String(); (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
				t.Errorf("logged %q, want %q", said, c.says)
			}
		})
	}
	var log bytes.Buffer
	tighten(filepath.Join(t.TempDir(), "none"), zerolog.New(&log))
	if log.Len() > 0 {
		t.Errorf("a directory that is not there: %s", log.String())
	}
}

// the daemon does so before it writes anything
func TestDaemonTightensItsDataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Listen, o.DataDir, o.Provider, o.Runners, o.SandboxRequire = "127.0.0.1:0", dir, "replay", 1, "process"
	a, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Stop(t.Context()) }()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode is %v, %v, want 0700", info.Mode(), err)
	}
}
