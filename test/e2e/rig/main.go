// Package rig is the harness of the end-to-end tests: real daemons reached over HTTP (Daemon), a scripted model server
// (Model), web servers that programs fetch from (Source), client commands (Run) and terminals (Terminal).
//
// The test binary stands in for the real one: each package that uses the rig must have a TestMain that calls Main.
package rig

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/cli"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

// actAsBinary is the environment variable that makes the test binary act as the real one.
const actAsBinary = "RECURGENTD_TEST_ACT_AS_BINARY"

// ClockFile is the environment variable with the path of a file from which a daemon under test reads how far its clock
// is ahead, such as "24h". Only test binaries read it.
const ClockFile = "RECURGENTD_TEST_CLOCK"

// StopTime is the environment variable for the time that a daemon under test may take for a clean stop, such as "10m".
const StopTime = "RECURGENTD_TEST_STOP_TIME"

// compilerDir and goCache are environment variables with the directory in which all daemons under test keep compiled
// programs, and the go command's cache.
const (
	compilerDir = "RECURGENTD_TEST_COMPILER_DIR"
	goCache     = "RECURGENTD_TEST_GOCACHE"
)

// OwnCompiler is an environment entry that makes a daemon keep compiled programs in its data directory.
const OwnCompiler = compilerDir + "="

// OwnGoCache is an environment entry that makes a daemon use no Go cache of the tests: its user may not reach that one.
const OwnGoCache = goCache + "="

// Binary is the environment variable with the path of the binary to start a daemon from, as returned by Named.
const Binary = "RECURGENTD_TEST_BINARY"

// Named returns a path of the test binary under another name. TestMain can then recognise its processes and make them
// behave differently.
func Named(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Link(os.Args[0], path); err == nil {
		return path
	}
	data, err := os.ReadFile(os.Args[0]) // temporary files may be on another file system
	if err == nil {
		err = os.WriteFile(path, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Main runs the tests of a package. A process that a test has started from the test binary acts as the daemon, a runner
// or a client instead, so tests can start real processes without building anything. Main does not return.
func Main(m *testing.M) {
	// A runner has an empty environment, so its argument identifies it.
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg {
		os.Exit(worker.Main())
	}
	if _, ok := os.LookupEnv(actAsBinary); ok {
		sh := cli.System()
		if file, ok := os.LookupEnv(ClockFile); ok {
			sh.Clock = clockFrom(file)
		}
		if text, ok := os.LookupEnv(StopTime); ok {
			var err error
			if sh.StopTime, err = time.ParseDuration(text); err != nil {
				panic(err)
			}
		}
		sh.CompilerDir, sh.GoCache = os.Getenv(compilerDir), os.Getenv(goCache)
		useRunner()
		os.Exit(cli.Main(sh, os.Args[1:]))
	}
	code := m.Run()
	if programDir != "" {
		_ = os.RemoveAll(programDir) // it is below the temporary directory
	}
	os.Exit(code)
}

// clockFrom returns a clock that is ahead by the duration in the file. It reads the file each time.
func clockFrom(file string) func() time.Time {
	return func() time.Time {
		text, err := os.ReadFile(file)
		if err != nil {
			return time.Now()
		}
		ahead, err := time.ParseDuration(string(text))
		if err != nil {
			return time.Now()
		}
		return time.Now().Add(ahead)
	}
}
