package main

import (
	"os"
	"path/filepath"
	"testing"
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
		main()
		return
	}
	os.Exit(m.Run())
}
