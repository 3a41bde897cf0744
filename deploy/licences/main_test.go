package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The text has a licence of Go, of each module that the binary, which is this test, is built of, and of what the
// checkout carries from others.
func TestEverythingHasItsLicence(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := write(&text, binary); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Go 1.", "The Go Authors", "Additional IP Rights Grant (Patents)",
		"golang.org/x/telemetry", "internal/ui/web/vendor\n", "preact",
		"internal/runtime/recurgent/html/internal/cascadia\n", "Andy Balholm"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q", want)
		}
	}
	if strings.Contains(text.String(), "testdata") {
		t.Error("the text has licences of test data, which no binary holds")
	}
}

// Files of licences and notices are found by their usual names, and no other files are taken for them.
func TestNamesOfLicences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"LICENSE", "Licence.md", "COPYING", "UNLICENSE", "LICENSE-MIT", "NOTICE.txt",
		"license.go", "licensing.md", "README.md", "copying_test.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	texts, err := licencesIn(dir)
	if got := string(bytes.Join(texts, []byte(" "))); err != nil ||
		got != "COPYING LICENSE LICENSE-MIT Licence.md NOTICE.txt UNLICENSE" {
		t.Errorf("got %s, %v", got, err)
	}
}
