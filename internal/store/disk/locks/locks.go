// Package locks provides mutexes with a place in an order, which panic when a goroutine takes two of them in the wrong
// order. Two goroutines that take the same locks in different orders deadlock, but only rarely; the check finds a wrong
// order each time.
//
// Checking needs the goroutine's number, which is slow to get. So it is for tests and builds with the race detector. The
// zero Mutex and one that was not given an Order check nothing and cost what those of package sync cost.
package locks

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// Order checks that each goroutine takes locks by ascending rank, and none twice. Nil checks nothing.
type Order struct {
	names []string

	mu   sync.Mutex
	held map[int64][]int // ranks by goroutine, in the order they were taken; guarded by mu
}

// NewOrder returns an order of the locks with these names: a lock's rank is its place among them.
func NewOrder(names ...string) *Order { return &Order{names: names, held: map[int64][]int{}} }

// take records that the goroutine is about to take a lock. It panics when that is against the order.
func (o *Order) take(rank int) {
	if o == nil {
		return
	}
	id := goroutine()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.held[id] {
		if r >= rank {
			panic(fmt.Sprintf("lock order: %s is taken while %s is held", o.names[rank], o.names[r]))
		}
	}
	o.held[id] = append(o.held[id], rank)
}

// release records that the goroutine has released a lock.
func (o *Order) release(rank int) {
	if o == nil {
		return
	}
	id := goroutine()
	o.mu.Lock()
	defer o.mu.Unlock()
	held := o.held[id]
	i := slices.Index(held, rank)
	if i < 0 {
		panic(fmt.Sprintf("lock order: %s is released by a goroutine that does not hold it", o.names[rank]))
	}
	if held = slices.Delete(held, i, i+1); len(held) == 0 {
		delete(o.held, id)
		return
	}
	o.held[id] = held
}

// goroutine returns the number of the running goroutine, which package runtime shows only in traces.
func goroutine() int64 {
	var buf [40]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(text, []byte(" "))
	id, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		panic("a trace without the number of its goroutine: " + err.Error()) // it is the start of every trace
	}
	return id
}

// ranked holds a lock's rank in an Order.
type ranked struct {
	order *Order
	rank  int
}

// Rank gives the lock this rank in the order. It must be called before the lock is used.
func (r *ranked) Rank(o *Order, rank int) { r.order, r.rank = o, rank }

func (r *ranked) take()    { r.order.take(r.rank) }
func (r *ranked) release() { r.order.release(r.rank) }

// Mutex is a sync.Mutex with a rank in an Order.
type Mutex struct {
	ranked
	mu sync.Mutex
}

// Lock is sync.Mutex.Lock.
func (m *Mutex) Lock() {
	m.take()
	m.mu.Lock()
}

// Unlock is sync.Mutex.Unlock.
func (m *Mutex) Unlock() {
	m.mu.Unlock()
	m.release()
}

// RWMutex is a sync.RWMutex with a rank in an Order.
type RWMutex struct {
	ranked
	mu sync.RWMutex
}

// Lock is sync.RWMutex.Lock.
func (m *RWMutex) Lock() {
	m.take()
	m.mu.Lock()
}

// Unlock is sync.RWMutex.Unlock.
func (m *RWMutex) Unlock() {
	m.mu.Unlock()
	m.release()
}

// RLock is sync.RWMutex.RLock.
func (m *RWMutex) RLock() {
	m.take()
	m.mu.RLock()
}

// RUnlock is sync.RWMutex.RUnlock.
func (m *RWMutex) RUnlock() {
	m.mu.RUnlock()
	m.release()
}
