package main

import (
	"slices"
	"sync"
	"time"
)

// A load is the result of driving clients.
type load struct {
	calls  int
	rate   float64       // calls per second
	median time.Duration // duration of one call
}

// drive lets clients call the targets for the given time, each one call after another. Client i calls the targets i,
// i+clients, i+2*clients and so on, so no two clients call a session at the same time.
func (d *daemon) drive(targets []target, clients int, length time.Duration) (load, error) {
	var mu sync.Mutex
	var times []time.Duration
	var failed error
	var work sync.WaitGroup
	began := time.Now()
	for c := range clients {
		work.Go(func() {
			var mine []time.Duration
			var err error
			for i := c; time.Since(began) < length && err == nil; i += clients {
				at := time.Now()
				err = d.call(targets[i%len(targets)])
				mine = append(mine, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, mine...)
			if err != nil {
				failed = err
			}
		})
	}
	work.Wait()
	took := time.Since(began)
	slices.Sort(times)
	return load{calls: len(times), rate: float64(len(times)) / took.Seconds(), median: times[len(times)/2]}, failed
}

// each calls f for all numbers below n, eight at a time, and returns the first error in order of the numbers.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var work sync.WaitGroup
	next := make(chan int)
	for range 8 {
		work.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// median sorts the values and returns the middle one. There must be at least one.
func median[T ~int64 | ~float64](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}
