package rig

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Client runs a client command of the real binary against the daemon.
func (d *Daemon) Client(args ...string) (stdout, stderr string, code int) {
	d.T.Helper()
	defer d.agree()
	return Run(d.T, append(Environment(d.Dir), "RECURGENT_URL="+d.anyURL()), args...)
}

// Run runs the binary to its end with exactly that environment.
func Run(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, &out, &errs, 5*time.Second
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Absolute makes a path of the test's own files good for a process in another directory.
func Absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
