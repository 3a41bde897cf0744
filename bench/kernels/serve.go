package main

// The native binary contains a copy of this file, so it may use only the standard library.

import (
	"encoding/json"
	"io"
	"runtime"
	"syscall"
	"time"
)

// A job asks a runner to run a kernel with the argument n at least once, and again until it has used Seconds of
// processor time.
type job struct {
	Kernel  string  `json:"kernel"`
	N       int     `json:"n"`
	Seconds float64 `json:"seconds"`
}

// An answer is a runner's result of a job. Seconds is the processor time of one run, over all threads.
type answer struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Seconds float64         `json:"seconds,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// serve answers jobs, one per line, until in ends. prepare returns a function that runs a kernel once.
func serve(in io.Reader, out io.Writer, prepare func(job) (func() (any, error), error)) error {
	jobs, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var j job
		if err := jobs.Decode(&j); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		a, err := do(j, prepare)
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// do runs a job. The first run is not measured: it warms up, and its value is the answer.
func do(j job, prepare func(job) (func() (any, error), error)) (answer, error) {
	run, err := prepare(j)
	if err != nil {
		return answer{}, err
	}
	value, err := run()
	if err != nil {
		return answer{}, err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return answer{}, err
	}
	// Garbage of the first run must not be collected in the measured ones.
	runtime.GC()
	limit := time.Duration(j.Seconds * float64(time.Second))
	began, runs, spent := processorTime(), 0, time.Duration(0)
	for runs == 0 || spent < limit {
		if _, err := run(); err != nil {
			return answer{}, err
		}
		runs++
		spent = processorTime() - began
	}
	return answer{Value: raw, Seconds: spent.Seconds() / float64(runs)}, nil
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
