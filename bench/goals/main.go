// Command goals measures the daemon with many programs in use at once and with programs that have no runner yet: the
// working set, owners, nested calls, cold and large calls, and one owner during another's flood. Each row is a ratio of
// two measurements taken alternately in one run, so that other load on the machine does not decide the result.
//
//	go run ./bench/goals [-daemon FILE] [-compare FILE] [-only rows] [-seconds N] [-rounds N]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	var b bench
	if len(os.Args) > 1 && os.Args[1] == "flood" {
		if err := floodClients(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "flood:", err)
			os.Exit(1)
		}
		return
	}
	flag.StringVar(&b.daemon, "daemon", "", "binary to measure; built by scripts/build when empty")
	flag.StringVar(&b.other, "compare", "",
		"another binary, whose cold and large calls are measured in turns with the first one's")
	only := flag.String("only", "",
		"rows to measure, with commas: tools, owners, depth, cold, large, floods, namespaces; empty for all")
	flag.StringVar(&b.flood, "flood", "",
		"of the row floods only this one: busy, waiting, rude, bodies, replies, forging, chains, trickle, streams")
	seconds := flag.Float64("seconds", 3, "length of one measurement")
	flag.IntVar(&b.rounds, "rounds", 3, "how often each measurement is repeated; the median counts")
	flag.IntVar(&b.tools, "tools", 1000, "tools of the row tools")
	flag.IntVar(&b.namespaces, "namespaces", 1000, "namespaces of the row namespaces")
	flag.Parse()
	b.length = time.Duration(*seconds * float64(time.Second))
	if err := b.run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "goals:", err)
		os.Exit(1)
	}
}

// A bench holds the settings that all measurements share.
type bench struct {
	daemon, other string
	length        time.Duration
	rounds, tools int
	namespaces    int
	flood         string
	// dir is a temporary directory for everything that the measurements write.
	dir string
}

// rows lists the rows in the order in which they are printed.
var rows = []struct {
	name    string
	measure func(*bench) ([]string, error)
}{
	{"tools", (*bench).manyTools}, {"owners", (*bench).manyOwners}, {"depth", (*bench).nested}, {"cold", (*bench).cold},
	{"large", (*bench).large}, {"floods", (*bench).floods}, {"namespaces", (*bench).manyNamespaces},
}

// run measures the chosen rows and prints them as they come.
func (b *bench) run(only string) (err error) {
	if b.dir, err = os.MkdirTemp("", "goals"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.daemon == "" {
		b.daemon = filepath.Join(b.dir, "recurgentd")
		build := exec.Command("scripts/build", b.daemon)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("scripts/build: %w", err)
		}
	}
	fmt.Println("| measured | ratio, or time | goal |\n|---|---:|---:|")
	for _, r := range rows {
		if only != "" && !slices.Contains(strings.Split(only, ","), r.name) {
			continue
		}
		lines, err := r.measure(b)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		for _, line := range lines {
			fmt.Println(line)
		}
	}
	return nil
}
