package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// manyNamespaces compares a daemon with many namespaces, each with a tool, a session and a few calls, with a daemon
// that has only one.
func (b *bench) manyNamespaces() ([]string, error) {
	daemons, targets := make([]*daemon, 2), make([][]target, 2)
	for i, n := range []int{b.namespaces, 1} {
		d, err := b.start(b.daemon, nil)
		if err != nil {
			return nil, err
		}
		defer d.stop()
		d.token, daemons[i], targets[i] = nil, d, make([]target, n)
		if err := each(n, func(k int) error { return d.fill(fmt.Sprintf("n%d", k), &targets[i][k]) }); err != nil {
			return nil, err
		}
	}
	var warm, after, memory, start, fds, started []float64
	both := func(into *[]float64, measure func(i int) (float64, error)) error {
		many, err := measure(0)
		if err != nil {
			return err
		}
		one, err := measure(1)
		*into = append(*into, many/one)
		return err
	}
	latency := func(i int) (float64, error) {
		got, err := daemons[i].drive(targets[i][:1], 1, b.length)
		return got.median.Seconds(), err
	}
	resident := func(i int) (float64, error) { return daemons[i].resident() }
	for range b.rounds {
		if err := both(&warm, latency); err != nil {
			return nil, err
		}
	}
	if err := both(&memory, resident); err != nil {
		return nil, err
	}
	for range b.rounds {
		if err := both(&start, func(i int) (float64, error) { return daemons[i].startAgain() }); err != nil {
			return nil, err
		}
		if err := both(&started, resident); err != nil {
			return nil, err
		}
		if err := both(&fds, func(i int) (float64, error) { return daemons[i].descriptors() }); err != nil {
			return nil, err
		}
		if err := both(&after, latency); err != nil {
			return nil, err
		}
	}
	line := func(what string, ratios []float64) string {
		return fmt.Sprintf("| %d namespaces to one: %s | %.2f | 1.5 |", b.namespaces, what, median(ratios))
	}
	return []string{line("warm p50 of a call in one of them", warm), line("the same after a restart", after),
		line("memory of the daemon when each was just used", memory),
		line("memory after a restart", started), line("time of a start", start),
		line("open descriptors after a restart", fds)}, nil
}

// fill creates the namespace and calls its tool, whose first call forges it.
func (d *daemon) fill(namespace string, t *target) error {
	req, err := http.NewRequest(http.MethodPut, d.url+"/v1/namespaces/"+namespace, nil)
	if err != nil {
		return err
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return err
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("PUT %s: %s", req.URL, resp.Status)
	}
	if *t, err = d.target(namespace, "tool", "leaf"); err != nil {
		return err
	}
	for range 2 {
		if err := d.call(*t); err != nil {
			return err
		}
	}
	return nil
}

// startAgain stops the process, starts it again, and returns the seconds until it is ready.
func (d *daemon) startAgain() (float64, error) {
	d.end()
	began := time.Now()
	err := d.run()
	return time.Since(began).Seconds(), err
}

// resident returns the memory of the daemon's own process in KiB.
func (d *daemon) resident() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
	return strconv.ParseFloat(strings.Fields(string(rest))[0], 64)
}

// descriptors returns the number of open file descriptors of the daemon.
func (d *daemon) descriptors() (float64, error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	return float64(len(open)), err
}
