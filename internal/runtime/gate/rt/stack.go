package rt

// GrowStack grows the calling goroutine's stack in one step to a size sufficient for most checks and compilations.
// Otherwise the Go runtime doubles the stack, and copies its contents, five times in each process.
func GrowStack() { room(false) }

// room needs space for its whole frame on the stack, but touches it only if touch is true.
//
//go:noinline
func room(touch bool) byte {
	if !touch {
		return 0
	}
	var frame [60 << 10]byte
	fill(&frame)
	return frame[0]
}

//go:noinline
func fill(frame *[60 << 10]byte) { frame[len(frame)-1] = 1 }
