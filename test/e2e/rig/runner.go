package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// runnerFile and launcherFile are the variables that name the programs of runners and launchers to a daemon under test, which then starts them as one that scripts/build
// made does.
const (
	runnerFile   = "RECURGENTD_TEST_RUNNER"
	launcherFile = "RECURGENTD_TEST_LAUNCHER"
)

// runnerBuild stands in for the digest that scripts/build computes.
const runnerBuild = "of the tests"

// programDir is where programs are built. The process that runs the tests removes it at its end.
var programDir string

var makeProgramDir = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "programs")
	if err != nil {
		return err
	}
	programDir = dir
	return os.Chmod(dir, 0o755) // a daemon under test may be another user
})

// buildRunner builds the programs that a daemon carries. The test binary could be its own runner, but each start of one initializes all that the tests and the
// daemon import, which takes a process ten times as long; and a daemon that people run does not do so. Their source is part of the test binary, so
// what the go command keeps of a test's results does not outlive a change of it.
//
// It returns no variables where no program is carried, or the race detector is to see into runners.
var buildRunner = sync.OnceValues(func() (env []string, err error) {
	if runtime.GOOS != "linux" || wire.RaceBuild {
		return nil, nil
	}
	if err := buildPrograms("./cmd/recurgent-runner", "./cmd/recurgent-launcher"); err != nil {
		return nil, err
	}
	return []string{runnerFile + "=" + filepath.Join(programDir, "recurgent-runner"),
		launcherFile + "=" + filepath.Join(programDir, "recurgent-launcher")}, nil
})

func buildPrograms(packages ...string) error {
	if err := makeProgramDir(); err != nil {
		return err
	}
	build := exec.Command("go",
		append([]string{"build", "-ldflags", "-s -w -X '" + sandboxes + "/wire.Build=" + runnerBuild + "'", "-o",
			programDir + "/"}, packages...)...)
	build.Dir, build.Env = Root(), append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%v are not built: %w\n%s", packages, err, said)
	}
	return nil
}

// compiles returns what a daemon has in its environment that compiles programs.
func compiles() ([]string, error) {
	at, err := apptest.Compiler()
	return []string{compilerDir + "=" + at[0], goCache + "=" + at[1]}, err
}

const sandboxes = "github.com/recurgentd/recurgentd/internal/runtime/sandbox"

// useRunner makes this process, which stands in for the daemon, start its runners and launchers from the programs. A binary that Named made is both itself.
func useRunner() {
	own, err := os.Executable()
	if file, ok := os.LookupEnv(runnerFile); ok && err == nil && strings.HasSuffix(own, ".test") {
		embedded.File, embedded.LauncherFile, wire.Build = file, os.Getenv(launcherFile), runnerBuild
	}
}
