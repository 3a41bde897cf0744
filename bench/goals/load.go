package main

import (
	"slices"
	"sync"
	"time"
)

// A load is what clients got.
type load struct {
	calls  int
	rate   float64       // calls a second
	median time.Duration // of one call
}

// drive has clients call the targets for the length, each one call after another. Client i begins with the i-th target and goes on with each that is as many further as
// there are clients, so that no two call one session at once.
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

// each runs f for all numbers below n, eight at a time.
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

func median[T ~int64 | ~float64](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}
