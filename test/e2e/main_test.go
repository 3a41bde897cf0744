package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/cli"
)

// actAsBinary is the variable that makes the test binary act as the real one.
const actAsBinary = "RECURGENTD_TEST_ACT_AS_BINARY"

// TestMain lets the test binary stand in for the real one: started by a test it is the daemon, the runner or
// a client, so that the tests below start real processes without a build of their own.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "curl" {
		os.Exit(actAsCurl(os.Args[1:]))
	}
	// A runner has an empty environment, so it is known by its argument.
	if _, ok := os.LookupEnv(actAsBinary); ok || len(os.Args) > 1 && os.Args[1] == "runner" {
		sh := cli.System()
		if file, ok := os.LookupEnv(testClock); ok {
			sh.Clock = clockFrom(file)
		}
		os.Exit(cli.Main(sh, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// testClock is the variable that names the file from which a daemon under test learns how far its clock is ahead. It is
// compiled into test binaries only.
const testClock = "RECURGENTD_TEST_CLOCK"

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
