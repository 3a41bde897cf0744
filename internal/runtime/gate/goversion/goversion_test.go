package goversion

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// toolchains returns the versions that the Makefile lists.
func toolchains(t *testing.T) []string {
	makefile, err := os.ReadFile("../../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(regexp.MustCompile(`(?m)^KNOWN := (.*)$`).FindSubmatch(makefile)[1]))
}

// The Makefile lists the versions that have a file here, the newest last.
func TestKnownVersions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("go1*.go")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range files {
		have = append(have, "go1."+strings.TrimSuffix(strings.TrimPrefix(f, "go1"), ".go"))
	}
	var known []string
	for _, v := range toolchains(t) {
		known = append(known, v[:strings.LastIndexByte(v, '.')])
	}
	if !slices.Equal(have, known) {
		t.Errorf("files for %q, the Makefile knows %q", have, known)
	}
}
