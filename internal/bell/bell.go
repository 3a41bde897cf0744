// Package bell wakes everybody who waits for something, in this process. It does not say what has happened, and a ring that nobody waits for is forgotten:
// who waits takes the channel first, looks then, and waits if there is nothing new.
package bell

import "sync"

// Bell is ready as it is. Its methods may be called concurrently.
type Bell struct {
	mu   sync.Mutex
	rung chan struct{} // nil while nobody waits; guarded by mu
}

// Wait returns a channel that is closed at the next ring.
func (b *Bell) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

// Ring wakes all who wait.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
