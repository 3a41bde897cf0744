package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

func main() {
	if prepare, ok := servers[os.Getenv(serveAs)]; ok {
		exit(serve(os.Stdin, os.Stdout, prepare))
	}
	only := flag.String("only", "", "names of kernels, with commas; empty for all")
	rounds := flag.Int("rounds", 5,
		"how often each kernel is measured on each runner; ratios are medians over the rounds")
	seconds := flag.Float64("seconds", 0.2, "processor time of one measurement, in seconds")
	into := flag.String("write", "", "document to write the table into")
	flag.Parse()
	exit(run(*only, *rounds, *seconds, *into))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run measures the chosen kernels and prints the table, or writes it into a document.
func run(only string, rounds int, seconds float64, into string) error {
	chosen := slices.Clone(kernels)
	if only != "" {
		chosen = nil
		for name := range strings.SplitSeq(only, ",") {
			k, err := find(name)
			if err != nil {
				return err
			}
			chosen = append(chosen, k)
		}
	}
	if into != "" && only != "" {
		return errors.New("a document takes the table of all kernels only")
	}
	dir, err := os.MkdirTemp("", "kernels")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	runners, err := startAll(dir)
	if err != nil {
		return err
	}
	defer stopAll(runners)
	rows, err := measure(chosen, runners, rounds, seconds, os.Stderr)
	if err != nil {
		return err
	}
	text := table(rows, runners)
	fmt.Printf("%s, %s/%s\n\n%s", runtime.Version(), runtime.GOOS, runtime.GOARCH, text)
	if into == "" {
		return nil
	}
	return write(into, text)
}
