// Command sbom writes the software bill of materials of a Go binary as CycloneDX JSON: the modules that the binary says
// it was built of, with their checksums, and the Go standard library. The same binary and time give the same bytes.
//
//	sbom BINARY SECONDS >recurgentd.cdx.json
//
// SECONDS is the time of the document since 1970, for releases that of the commit.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := write(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, args []string) error {
	if len(args) != 2 {
		return errors.New("give a binary and a time in seconds")
	}
	seconds, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	bom, err := describe(info, time.Unix(seconds, 0).UTC())
	if err != nil {
		return err
	}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
}

// describe returns the bill of materials of what was built so.
func describe(info *debug.BuildInfo, at time.Time) (*cdx.BOM, error) {
	main, err := component(cdx.ComponentTypeApplication, &info.Main)
	if err != nil {
		return nil, err
	}
	std := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion}
	std.PackageURL = "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
	std.BOMRef = std.PackageURL
	parts, refs := []cdx.Component{std}, []string{std.BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c, err := component(cdx.ComponentTypeLibrary, m)
		if err != nil {
			return nil, err
		}
		parts, refs = append(parts, c), append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &main}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return bom, nil
}

// component describes a module. Its hash is the one of go.sum, over the list of its files; what is built from a
// checkout has none.
func component(kind cdx.ComponentType, m *debug.Module) (cdx.Component, error) {
	version := m.Version
	if version == "" {
		version = "(devel)"
	}
	c := cdx.Component{Type: kind, Name: m.Path, Version: version,
		PackageURL: "pkg:golang/" + m.Path + "@" + strings.NewReplacer("+", "%2B", "(", "%28", ")",
			"%29").Replace(version)}
	c.BOMRef = c.PackageURL
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		raw, err := base64.StdEncoding.DecodeString(sum)
		if err != nil {
			return c, fmt.Errorf("the checksum of %s: %w", m.Path, err)
		}
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
	}
	return c, nil
}
