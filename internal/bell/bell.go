// Package bell wakes all goroutines of this process that wait for something to happen. A ring carries no information,
// and it is lost if nobody waits. A waiter therefore calls Wait first, then looks for news, and receives from the
// channel only if there is none.
package bell

import "sync"

// Bell wakes its waiters at each ring. The zero value is ready to use. Its methods may be called concurrently.
type Bell struct {
	mu   sync.Mutex
	rung chan struct{} // nil while nobody waits; guarded by mu
}

// Wait returns a channel that is closed by the next Ring.
func (b *Bell) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

// Ring wakes all waiters.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
