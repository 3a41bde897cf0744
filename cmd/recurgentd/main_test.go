package main

import (
	"os"
	"slices"
	"testing"
)

// TestMain lets the test binary stand in for the real one: started with a subcommand it is the daemon, the runner or
// a client, so that the tests below start real processes without a build of their own.
func TestMain(m *testing.M) {
	commands := []string{"serve", "runner", "call", "demo", "version", "healthcheck", "completion", "help"}
	if len(os.Args) > 1 && slices.Contains(commands, os.Args[1]) {
		main()
		return
	}
	os.Exit(m.Run())
}
