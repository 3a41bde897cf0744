// Package threads makes the Go runtime create OS threads ahead of time, for processes that may be unable to create them
// later.
package threads

import (
	"runtime"
	"sync"
)

// Runner is the number of threads reserved in a runner, in addition to the three or more of its start. A confined
// runner cannot create threads. The Go runtime needs one for the program, one waiting at the pipe, one in the poller,
// two for itself, and occasionally one for each that is about to sleep. It ends no idle thread. With five in all,
// programs that opened files ran out of threads. Each costs 1 % of a cold call.
const Runner = 5

// Reserve makes the Go runtime create n threads in addition to busy ones, and keep them for later use.
func Reserve(n int) {
	var held, done sync.WaitGroup
	release := make(chan struct{})
	held.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread() // while it waits, a locked goroutine occupies a thread
			defer runtime.UnlockOSThread()
			held.Done()
			<-release
		})
	}
	held.Wait()
	close(release)
	done.Wait()
	// While all threads were held, the scheduler may have decided to create another one. It exists once the world has
	// stopped, because it is meant to run a processor. A goroutine profile without enough room stops the world and does
	// nothing else.
	runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
}
