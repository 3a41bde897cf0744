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

// runnerFile and launcherFile are environment variables with the paths of the runner and launcher programs. A daemon
// under test then starts these, as a daemon built by scripts/build starts its own.
const (
	runnerFile   = "RECURGENTD_TEST_RUNNER"
	launcherFile = "RECURGENTD_TEST_LAUNCHER"
)

// runnerBuild stands in for the digest that scripts/build computes.
const runnerBuild = "of the tests"

// programDir is the directory in which programs are built. Main removes it.
var programDir string

// makeProgramDir creates programDir once per process.
var makeProgramDir = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "programs")
	if err != nil {
		return err
	}
	programDir = dir
	return os.Chmod(dir, 0o755) // a daemon under test may run as another user
})

// buildRunner builds the programs that a daemon carries, and returns the environment variables that name them. The test
// binary could be its own runner, but each start would initialise everything that the tests and the daemon import,
// which takes a process ten times as long and which released daemons do not do. The sources of these programs are part
// of the test binary too, so go test does not use cached results after they change.
//
// It returns no variables on systems where daemons carry no programs, and under the race detector, which must see into
// runners.
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

// buildPrograms builds commands into programDir.
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

// compiles returns the environment of a daemon that compiles programs.
func compiles() ([]string, error) {
	at, err := apptest.Compiler()
	return []string{compilerDir + "=" + at[0], goCache + "=" + at[1]}, err
}

const sandboxes = "github.com/recurgentd/recurgentd/internal/runtime/sandbox"

// useRunner makes this process, which stands in for the daemon, start its runners and launchers from the built
// programs. A binary from Named is its own runner and launcher.
func useRunner() {
	own, err := os.Executable()
	if file, ok := os.LookupEnv(runnerFile); ok && err == nil && strings.HasSuffix(own, ".test") {
		embedded.File, embedded.LauncherFile, wire.Build = file, os.Getenv(launcherFile), runnerBuild
	}
}
