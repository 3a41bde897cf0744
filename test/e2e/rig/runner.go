package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// runnerFile is the variable that names the program of the runners to a daemon under test, which then starts them as one that scripts/build
// made does.
const runnerFile = "RECURGENTD_TEST_RUNNER"

// runnerBuild stands in for the digest that scripts/build computes.
const runnerBuild = "of the tests"

// runnerDir is where buildRunner builds. The process that runs the tests removes it at its end.
var runnerDir string

// buildRunner builds cmd/recurgent-runner. The test binary could be its own runner, but each start of one initializes all that the tests and the
// daemon import, which takes a process ten times as long; and a daemon that people run does not do so. Its source is part of the test binary, so
// what the go command keeps of a test's results does not outlive a change of it.
//
// It returns "" where no program is carried, or the race detector is to see into runners.
var buildRunner = sync.OnceValues(func() (string, error) {
	if runtime.GOOS != "linux" || wire.RaceBuild {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "runner")
	if err != nil {
		return "", err
	}
	runnerDir = dir
	if err := os.Chmod(dir, 0o755); err != nil { // a daemon under test may be another user
		return "", err
	}
	file := filepath.Join(dir, "recurgent-runner")
	build := exec.Command("go", "build", "-ldflags", "-s -w -X '"+sandboxes+"/wire.Build="+runnerBuild+"' -X "+sandboxes+"/worker.EngineTested=yes", "-o", file, "./cmd/recurgent-runner")
	build.Dir, build.Env = Root(), append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the program of the runners is not built: %w\n%s", err, said)
	}
	return file, nil
})

const sandboxes = "github.com/recurgentd/recurgentd/internal/runtime/sandbox"

// useRunner makes this process, which stands in for the daemon, start its runners from the program. A binary that Named made is its own runner.
func useRunner() {
	own, err := os.Executable()
	if file, ok := os.LookupEnv(runnerFile); ok && err == nil && strings.HasSuffix(own, ".test") {
		embedded.File, wire.Build = file, runnerBuild
	}
}
