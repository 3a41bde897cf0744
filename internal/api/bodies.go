package api

import (
	"io"

	"golang.org/x/sync/semaphore"
)

// smallBody is what a request may bring without being counted, and the step in which larger bodies are.
const smallBody = 64 << 10

// A held is what one request holds of the bytes that all bodies may have at once. A call that outlives its request keeps it to its end.
type held struct {
	budget *semaphore.Weighted
	bytes  int64 // taken of the budget
}

// release gives back what was taken. It may be called again.
func (h *held) release() {
	if h.bytes > 0 {
		h.budget.Release(h.bytes)
		h.bytes = 0
	}
}

// counted reads a body and takes what came of the budget, as it comes: what a client merely claims to send takes nothing.
type counted struct {
	body io.Reader
	held *held
	read int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.read += int64(n)
	for c.read > smallBody && c.held.bytes < c.read {
		if !c.held.budget.TryAcquire(smallBody) {
			return 0, fault(codeBodiesFull, "", "")
		}
		c.held.bytes += smallBody
	}
	return n, err
}
