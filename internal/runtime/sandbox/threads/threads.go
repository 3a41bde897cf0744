// Package threads makes the Go runtime create operating-system threads ahead of time, because it may be unable to create
// them later.
package threads

import (
	"runtime"
	"sync"
)

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
