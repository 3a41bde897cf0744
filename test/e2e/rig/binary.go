package rig

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Client runs a client command of the real binary against the daemon, or a command on its store. It returns after all
// replicas follow the same policy.
func (d *Daemon) Client(args ...string) (stdout, stderr string, code int) {
	d.T.Helper()
	// The command may have changed the policy.
	defer d.agree(nil)
	env := append(Environment(d.Dir), "RECURGENT_URL="+d.anyURL())
	if d.database != "" {
		env = append(env, "RECURGENT_STORE="+d.database)
	}
	return Run(d.T, env, args...)
}

// Expect is Client for a command that must end with the exit code and print all parts, on stdout or stderr. It returns
// stdout.
func (d *Daemon) Expect(code int, parts []string, args ...string) string {
	d.T.Helper()
	out, errs, got := d.Client(args...)
	if got != code {
		d.T.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, code, out, errs)
	}
	for _, p := range parts {
		if !strings.Contains(out+errs, p) {
			d.T.Errorf("%q: want %q in\n%s%s", args, p, out, errs)
		}
	}
	return out
}

// Run runs the binary to its end with exactly the environment env.
func Run(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return RunBinary(t, os.Args[0], env, args...)
}

// RunBinary is Run for another path of the binary, such as one that Named returned.
func RunBinary(t *testing.T, binary string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, &out, &errs, 5*time.Second
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Command returns a command for the binary with more added to a fresh environment. If the test fails, its log shows the
// command's stderr.
func Command(t *testing.T, more []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd, said := exec.Command(os.Args[0], args...), &Buffer{}
	cmd.Env, cmd.Stderr = append(Environment(t.TempDir()), more...), said
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("recurgentd %q said:\n%s", args, said)
		}
	})
	return cmd
}

// Absolute returns the absolute path of one of the test's own files, for a process in another directory.
func Absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err == nil {
		// The process reads the file, not the test. Stat makes it an input of the test for go test's cache.
		_, err = os.Stat(abs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
