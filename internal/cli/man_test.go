package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every command that --help lists has a manual page with all its flags.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var stderr bytes.Buffer
	if code := Main(Shell{Stdout: io.Discard, Stderr: &stderr, Env: noEnvironment}, []string{"man", dir}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	root := Command(Shell{Env: noEnvironment})
	root.InitDefaultCompletionCmd()
	pages := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		pages++
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			return
		}
		page := string(data)
		for _, want := range []string{".TH ", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", roff(c.Short)} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, roff("--"+f.Name)) {
				t.Errorf("%s lacks --%s", name, f.Name)
			}
		})
		for i, line := range strings.Split(page, "\n") {
			if request, _, _ := strings.Cut(line, " "); strings.HasPrefix(line, ".") &&
				!strings.Contains(" .TH .SH .TP .B .BR .nf .fi ", " "+request+" ") {
				t.Errorf("%s:%d: text became the request %q", name, i+1, request)
			}
		}
		for _, sub := range shownCommands(c) {
			check(sub)
		}
	}
	check(root)
	made, err := os.ReadDir(dir)
	if err != nil || len(made) != pages {
		t.Errorf("%d pages of %d commands: %v", len(made), pages, err)
	}
}

// The page has a section for each command, with all its flags, and its bytes are reproducible.
func TestReferenceIsWhole(t *testing.T) {
	t.Parallel()
	page := func() string {
		var out, stderr bytes.Buffer
		if code := Main(Shell{Stdout: &out, Stderr: &stderr, Env: noEnvironment}, []string{"reference"}); code != 0 {
			t.Fatalf("exit code %d: %s", code, &stderr)
		}
		return out.String()
	}
	whole := page()
	if whole != page() {
		t.Error("the page differs from time to time")
	}
	root := Command(Shell{Env: noEnvironment})
	root.InitDefaultCompletionCmd()
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		_, section, found := strings.Cut(whole, "# "+c.CommandPath()+"\n\n"+c.Short+".\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || !strings.Contains(section, strings.TrimSpace(c.Long)) {
			t.Errorf("no whole section for %s", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if c.Runnable() && !f.Hidden && !strings.Contains(section, "--"+f.Name) {
				t.Errorf("%s lacks --%s", c.CommandPath(), f.Name)
			}
		})
		if c.Name() == "completion" {
			return
		}
		for _, sub := range shownCommands(c) {
			check(sub)
		}
	}
	check(root)
	if strings.Contains(whole, "# recurgentd man") || strings.Contains(whole, "# recurgentd runner") {
		t.Error("the page has hidden commands")
	}
}

func TestRoffHoldsNoRequests(t *testing.T) {
	t.Parallel()
	got := roff(".x\n'y\n-z \\n")
	if want := "\\&.x\n\\&'y\n\\-z \\en"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
