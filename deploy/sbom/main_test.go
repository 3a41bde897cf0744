package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// The document lists what `go version -m` does of the binary, which is this test: each module with its version and
// checksum, and Go. It is the same each time.
func TestDocumentListsWhatTheBinaryIsBuiltOf(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := write(w, []string{binary, "1790000000"}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two documents of one binary differ")
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.Metadata.Timestamp != "2026-09-21T14:13:20Z" ||
		bom.Metadata.Component.Name != "github.com/recurgentd/recurgentd" {
		t.Errorf("got %s of %s, %+v", bom.BOMFormat, bom.Metadata.Timestamp, bom.Metadata.Component)
	}
	got := []string{}
	for _, c := range *bom.Components {
		line := c.Name + " " + c.Version
		if c.Hashes != nil {
			raw, err := hex.DecodeString((*c.Hashes)[0].Value)
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			line += " h1:" + base64.StdEncoding.EncodeToString(raw)
		}
		if c.PackageURL != "pkg:golang/"+c.Name+"@"+strings.TrimPrefix(strings.ReplaceAll(c.Version, "+", "%2B"),
			"go") || !slices.Contains(*(*bom.Dependencies)[0].Dependencies, c.BOMRef) {
			t.Errorf("%s: %s, %s", c.Name, c.PackageURL, c.BOMRef)
		}
		got = append(got, line)
	}
	if want := modulesOf(t, binary); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// modulesOf returns Go and the modules that `go version -m` names, each as name, version and checksum.
func modulesOf(t *testing.T, binary string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		switch {
		case len(list) == 0:
			list = append(list, "std "+fields[len(fields)-1])
		case len(fields) == 4 && fields[0] == "dep":
			list = append(list, strings.Join(fields[1:], " "))
		}
	}
	if len(list) < 2 {
		t.Fatalf("go version -m names no modules:\n%s", out)
	}
	return list
}

// What is no Go binary, or no time, is an error.
func TestOnlyGoBinariesAreDescribed(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"main.go", "0"}, {"nowhere", "0"}, {binary, "now"}} {
		var out bytes.Buffer
		if err := write(&out, args); err == nil || out.Len() > 0 {
			t.Errorf("%q: %v, %s", args, err, out.Bytes())
		}
	}
}
