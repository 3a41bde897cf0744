package locks

//lint:file-ignore SA2001 locks on purpose

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

type pair struct {
	a Mutex
	b RWMutex
}

func newPair() *pair {
	o := NewOrder("a", "b")
	p := &pair{}
	p.a.Rank(o, 0)
	p.b.Rank(o, 1)
	return p
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(*pair)
		want string // text in the panic; "" means no panic
	}{
		{"ascending", func(p *pair) { p.a.Lock(); p.b.Lock(); p.b.Unlock(); p.a.Unlock() }, ""},
		{"ascending, to read", func(p *pair) { p.a.Lock(); p.b.RLock(); p.b.RUnlock(); p.a.Unlock() }, ""},
		{"released in the order they were taken", func(p *pair) {
			p.a.Lock()
			p.b.Lock()
			p.a.Unlock()
			p.b.Unlock()
			p.a.Lock()
			p.a.Unlock()
		}, ""},
		{"one after the other", func(p *pair) { p.b.Lock(); p.b.Unlock(); p.a.Lock(); p.a.Unlock() }, ""},
		{"descending", func(p *pair) { p.b.Lock(); p.a.Lock() }, "a is taken while b is held"},
		{"descending, to read", func(p *pair) { p.b.RLock(); p.a.Lock() }, "a is taken while b is held"},
		{"twice", func(p *pair) { p.a.Lock(); p.a.Lock() }, "a is taken while a is held"},
		{"twice to read", func(p *pair) { p.b.RLock(); p.b.RLock() }, "b is taken while b is held"},
		{"released elsewhere", func(p *pair) {
			p.b.Lock()
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = recover() }()
				p.b.Unlock()
			})
			wg.Wait()
			p.a.Lock()
		}, "a is taken while b is held"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := panicOf(func() { c.do(newPair()) })
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got panic %q, want %q", got, c.want)
			}
		})
	}
}

func TestReleasedByAnotherGoroutine(t *testing.T) {
	t.Parallel()
	p := newPair()
	p.a.Lock()
	done := make(chan string)
	go func() { done <- panicOf(p.a.Unlock) }()
	if got := <-done; !strings.Contains(got, "does not hold it") {
		t.Errorf("got panic %q", got)
	}
}

func panicOf(do func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	do()
	return ""
}

// TestOrderIsOfEachGoroutine lets one goroutine hold b while another takes a and b.
func TestOrderIsOfEachGoroutine(t *testing.T) {
	t.Parallel()
	p := newPair()
	p.b.RLock()
	done := make(chan bool)
	go func() {
		defer close(done)
		p.a.Lock()
		p.b.RLock()
		p.b.RUnlock()
		p.a.Unlock()
	}()
	<-done
	p.b.RUnlock()
}

func TestWithoutAnOrderNothingIsChecked(t *testing.T) {
	t.Parallel()
	var p pair
	p.b.Lock()
	p.a.Lock()
	p.a.Unlock()
	p.b.Unlock()
}
