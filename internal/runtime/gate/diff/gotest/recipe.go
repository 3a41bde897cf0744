package gotest

import (
	"fmt"
	"go/build/constraint"
	"strings"
)

// kinds says why tests of each recipe but "run" are no programs of ours.
func kinds() map[string]string {
	return map[string]string{
		"asmcheck":            "is about the machine code that the compiler writes",
		"build":               "is only built, never run",
		"builddir":            "is only built, never run",
		"buildrun":            "is about how a binary is built",
		"buildrundir":         "has several packages",
		"compile":             "is only compiled, never run",
		"compiledir":          "is only compiled, never run",
		"errorcheck":          "is about messages of the compiler",
		"errorcheckandrundir": "is about messages of the compiler",
		"errorcheckdir":       "is about messages of the compiler",
		"errorcheckoutput":    "is about messages of the compiler",
		"errorcheckwithauto":  "is about messages of the compiler",
		"rundir":              "has several packages",
		"runindir":            "has several packages",
		"skip":                "the Go project skips it",
	}
}

// Left says from a test's path and its first lines why it is no program of ours. The answer is "" for those that are to be run.
func Left(name, source string) string {
	if dir, _, ok := strings.Cut(name, ".dir/"); ok {
		return "is a part of another test: " + dir + ".go"
	}
	recipe := ""
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if constraint.IsGoBuild(line) || constraint.IsPlusBuild(line) {
			if expr, err := constraint.Parse(line); err == nil && !expr.Eval(tag) {
				return "is not for linux/amd64: " + line
			}
			continue
		}
		if recipe = strings.TrimSpace(strings.TrimPrefix(line, "//")); recipe != "" {
			break
		}
	}
	words := strings.Fields(recipe)
	if len(words) == 0 {
		return "is a part of another test: it has no recipe"
	}
	if words[0] != "run" && words[0] != "runoutput" {
		if why, ok := kinds()[words[0]]; ok {
			return fmt.Sprintf("%s: %s", words[0], why)
		}
		return "is a part of another test: it has no recipe"
	}
	switch {
	case strings.Contains(recipe, "-goexperiment"):
		return "needs an experiment of the toolchain: " + recipe
	case strings.Contains(recipe, "maymorestack"):
		return "is about the growth of stacks: " + recipe
	case words[0] == "run" && len(words) > 1 && strings.HasSuffix(words[1], ".go"):
		return "has several files: " + recipe
	}
	return ""
}

// WritesProgram reports whether a test writes the program to be run, and with which arguments it does.
func WritesProgram(source string) (args []string, ok bool) {
	for line := range strings.Lines(source) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "//" && words[1] == "runoutput" {
			return words[2:], true
		}
	}
	return nil, false
}

// tag says which build constraints hold.
func tag(name string) bool {
	switch name {
	case "linux", "unix", "amd64", "gc":
		return true
	}
	return strings.HasPrefix(name, "go1.")
}
