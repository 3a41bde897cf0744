package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The check for vulnerabilities passes on what govulncheck says, and where nothing could be checked it says so, with an
// exit code of its own.
func TestVulncheckSaysWhatItCouldNotCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tool string // a script that stands for govulncheck; "" for none that can be had
		code       int
		want       string
	}{
		{"cannot be had", "", 69, "NOT CHECKED for vulnerabilities: govulncheck"},
		{"no database", "echo 'govulncheck: fetching vulnerabilities: no such host' >&2; exit 1", 69,
			"NOT CHECKED for vulnerabilities: govulncheck ended with 1; does vuln.go.dev answer?"},
		{"none", "[ \"$*\" = ./... ] && exit 0", 0, "no known vulnerability"},
		{"some", "echo 'Vulnerability #1: GO-2026-0001'; exit 3", 3, "GO-2026-0001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tools := t.TempDir()
			if c.tool != "" {
				script, err := os.ReadFile("../scripts/vulncheck")
				if err != nil {
					t.Fatal(err)
				}
				_, version, _ := strings.Cut(string(script), "\nversion=")
				version, _, _ = strings.Cut(version, "\n")
				if err := os.WriteFile(filepath.Join(tools, "govulncheck-"+version), []byte("#!/bin/sh\n"+c.tool+"\n"),
					0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "../scripts/vulncheck")
			cmd.Env = append(os.Environ(), "TOOLS="+tools, "GOPROXY=off", "GOFLAGS=-mod=mod",
				"GOMODCACHE="+filepath.Join(tools, "modules"))
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) {
				t.Errorf("exit code %d, want %d with %q:\n%s", code, c.code, c.want, out)
			}
		})
	}
}
