package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A flood is the load that one owner puts on the daemon.
type flood struct {
	name    string
	words   string
	clients int
	rude    bool // retries at once when refused
}

// floods lists the floods in the order in which they are measured. The first sends nothing: it shows the cost of a busy
// machine.
var floods = []flood{
	{"busy", "2 clients that compute and send nothing", 2, false},
	{"waiting", "10,000 clients with warm calls", 10_000, false},
	{"rude", "1,000 clients that never wait after 429", 1000, true},
	{"bodies", "200 clients with bodies of 4 MB", 200, false},
	{"replies", "200 clients that read 4 MB slowly", 200, false},
	{"forging", "1,000 clients with methods nobody wrote, a model of 1 s", 1000, false},
	{"chains", "1,000 clients with calls that nest six deep", 1000, false},
	{"trickle", "500 clients that send bodies of 4 MB slowly", 500, false},
	{"streams", "1,000 event streams that nobody reads, and 8 clients whose calls they show", 1008, false},
}

const (
	victim   = "alice"
	attacker = "mallory"
)

// floods measures the warm calls of one owner during each flood of another owner. It alternates with calls without a
// flood and with calls during the same flood at a second daemon, which shares processors and disk. Whatever the owner
// loses in the latter case is not the daemon's doing. The clients of a flood run in a process of their own with the
// lowest priority, as if they were on another machine.
func (b *bench) floods() ([]string, error) {
	var lines []string
	for _, f := range floods {
		if b.flood != "" && b.flood != f.name {
			continue
		}
		line, err := b.underFlood(f)
		if err != nil {
			return lines, fmt.Errorf("%s: %w", f.name, err)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// underFlood returns the table row of one flood.
func (b *bench) underFlood(f flood) (string, error) {
	d, err := b.start(b.daemon, []string{victim, attacker})
	if err != nil {
		return "", err
	}
	defer d.stop()
	elsewhere, err := b.start(b.daemon, []string{victim, attacker})
	if err != nil {
		return "", err
	}
	defer elsewhere.stop()
	mine, err := d.target(victim, "mine1", "leaf")
	if err != nil {
		return "", err
	}
	if _, err := d.drive([]target{mine}, 1, b.length); err != nil {
		return "", err
	}
	var alone, beside, apart []time.Duration
	var ratios, control []float64
	var seen, seenElsewhere string
	for range b.rounds {
		got, err := d.drive([]target{mine}, 1, b.length)
		if err != nil {
			return "", err
		}
		var under, other time.Duration
		if under, seen, err = b.beside(d, mine, d, f); err != nil {
			return "", err
		}
		if other, seenElsewhere, err = b.beside(d, mine, elsewhere, f); err != nil {
			return "", err
		}
		alone, beside, apart = append(alone, got.median), append(beside, under), append(apart, other)
		ratios = append(ratios, float64(under)/float64(got.median))
		control = append(control, float64(other)/float64(got.median))
	}
	ms := func(times []time.Duration) float64 { return median(times).Seconds() * 1000 }
	return fmt.Sprintf("| warm p50 of one owner beside another's flood, to without: %s; %.2f to %.2f ms, RSS %d MiB; the flood got %s; at another daemon %.2f (%.2f ms, %s) | %.2f | 2 |",
		f.words, ms(beside), ms(alone), d.memory()>>20, seen, median(control), ms(apart), seenElsewhere,
		median(ratios)), nil
}

// beside returns the median duration of calls of mine at d during a flood at the daemon at, and a summary of what the
// flood got.
func (b *bench) beside(d *daemon, mine target, at *daemon, f flood) (time.Duration, string, error) {
	stop, err := b.startFlood(at, f)
	if err != nil {
		return 0, "", err
	}
	got, err := d.drive([]target{mine}, 1, b.length)
	return got.median, stop(), err
}

// memory returns the daemon's peak resident set in bytes, or 0 if the system does not report it.
func (d *daemon) memory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	n, err := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// startFlood starts the clients and returns once all of them have sent something. stop ends them and returns a summary
// of what they got.
func (b *bench) startFlood(d *daemon, f flood) (stop func() string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("nice", "-n", "19", self, "flood", "-url", d.url, "-token", d.token(attacker), "-kind", f.name,
		"-clients", strconv.Itoa(f.clients), fmt.Sprintf("-rude=%v", f.rude))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	stop = func() string {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		said := "nothing"
		for lines.Scan() {
			said = lines.Text()
		}
		if err := lines.Err(); err != nil {
			said = err.Error()
		}
		_ = cmd.Wait() // how it ended does not matter
		return said
	}
	if !lines.Scan() {
		stop()
		return nil, fmt.Errorf("the flood has not begun")
	}
	return stop, nil
}
