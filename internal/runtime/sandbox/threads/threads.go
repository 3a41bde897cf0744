// Package threads makes the Go runtime create operating-system threads ahead of time, because it may be unable to create
// them later.
package threads

import (
	"runtime"
	"sync"
)

// Runner threads are made beside those that a start has made, which are three or more: a runner may not make threads, it has as many as it will ever need before
// it is confined. The Go runtime needs one for the program, one that waits at the pipe, one in the poller, two for itself, and now and then one for each that
// is about to sleep; it ends none that is idle. With five in all, programs that opened files ran out of them; each takes 1 % of a cold call.
const Runner = 5

// Reserve makes the Go runtime have n threads beside those that are busy, and keep them for whatever needs one later.
func Reserve(n int) {
	var held, done sync.WaitGroup
	release := make(chan struct{})
	held.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread() // and so needs a thread of its own while it waits
			defer runtime.UnlockOSThread()
			held.Done()
			<-release
		})
	}
	held.Wait()
	close(release)
	done.Wait()
	// A thread that the scheduler has just decided to make, while all others were held, is made now: it is to run a processor, and for
	// that the world cannot stop before.
	// A profile without enough room for all goroutines stops it, and does nothing else.
	runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
}
