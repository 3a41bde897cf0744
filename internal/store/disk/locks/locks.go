// Package locks provides mutexes with ranks, which panic when a goroutine takes two of them in the wrong order. Two
// goroutines that take the same locks in different orders deadlock, but only rarely; the check finds a wrong order
// every time.
//
// The check needs the goroutine's number, which is slow to obtain, and is therefore meant for tests and builds with the
// race detector. A Mutex that was not given an Order checks nothing and costs as much as one of package sync. The zero
// Mutex is ready to use.
package locks

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// Order checks that each goroutine takes locks in ascending rank and none of them twice. A nil Order checks nothing.
type Order struct {
	names []string

	mu   sync.Mutex
	held map[int64][]int // ranks by goroutine, in the order they were taken; guarded by mu
}

// NewOrder returns an order of locks with these names. The rank of a lock is its index among them.
func NewOrder(names ...string) *Order { return &Order{names: names, held: map[int64][]int{}} }

// take records that the goroutine is about to take a lock. It panics if a held lock has the same rank or a higher one.
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

// release records that the goroutine has released a lock. It panics if the goroutine does not hold it.
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

// goroutine returns the number of the running goroutine, which package runtime exposes only in stack traces.
func goroutine() int64 {
	var buf [40]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(text, []byte(" "))
	id, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		// Every stack trace starts with the number.
		panic("a trace without the number of its goroutine: " + err.Error())
	}
	return id
}

// ranked holds a lock's rank in an Order.
type ranked struct {
	order *Order
	rank  int
}

// Rank sets the lock's rank in the order. It must be called before the lock is used.
func (r *ranked) Rank(o *Order, rank int) { r.order, r.rank = o, rank }

func (r *ranked) take()    { r.order.take(r.rank) }
func (r *ranked) release() { r.order.release(r.rank) }

// Mutex is a sync.Mutex with a rank in an Order. Unlock must run on the goroutine that called Lock.
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

// RWMutex is a sync.RWMutex with a rank in an Order. Unlike sync.RWMutex, nested read locks of one goroutine count as a
// wrong order.
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
