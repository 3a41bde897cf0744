package rig

import (
	"os"
	"strconv"
	"testing"
)

// Number returns the integer in an environment variable, or otherwise if the variable is unset or empty.
func Number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s is no whole number", variable, text)
	}
	return n
}
