// Command pack writes the pack that a daemon for the system and processor embeds (package carried): the tools in a
// directory, and the packages of this module and the standard library that programs are linked with. It compiles these
// packages with the go command.
//
//	pack SYSTEM PROCESSOR TOOLS >FILE
//
// With the path of a program alone it writes that program, compressed:
//
//	pack PROGRAM >FILE
//
// scripts/build runs it.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/native/carried"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch len(args) {
	case 1:
		return carried.Compress(os.Stdout, args[0])
	case 3:
	default:
		return errors.New("give a program, or system, processor and directory of the tools")
	}
	x := carried.Index{System: args[0], Processor: args[1]}
	env := append(os.Environ(), append(carried.Settings, "GOOS="+x.System, "GOARCH="+x.Processor, "GOEXPERIMENT=")...)
	version, err := goCommand(env, "env", "GOVERSION")
	if err != nil {
		return err
	}
	x.Go = strings.TrimSpace(version)
	sources := []carried.Source{{File: carried.Compile, From: filepath.Join(args[2], carried.Compile)},
		{File: carried.Link, From: filepath.Join(args[2], carried.Link)}}
	list, err := goCommand(env, carried.ListCommand(x.Processor)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(list) {
		path, archive, _ := strings.Cut(strings.TrimSpace(line), "=")
		sources = append(sources, carried.Archive(path, archive))
	}
	return carried.Write(os.Stdout, x, sources)
}

// goCommand runs the go command, or the one in $GO, and returns its output.
func goCommand(env []string, args ...string) (string, error) {
	name := os.Getenv("GO")
	if name == "" {
		name = "go"
	}
	cmd := exec.Command(name, args...)
	cmd.Env = env
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, said.Bytes())
	}
	return string(out), nil
}
