package rt

// GrowStack makes the calling goroutine's stack large enough for most checks and compilations at once. Otherwise the Go runtime doubles it, and copies all
// that is on it, five times in each process.
func GrowStack() { room(false) }

// room needs its whole frame on the stack, and touches none of it unless touch is true.
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
