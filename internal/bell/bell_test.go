package bell

import "testing"

// A ring wakes all current waiters and none that begin to wait later.
func TestBell(t *testing.T) {
	t.Parallel()
	var b Bell
	b.Ring() // nobody waits
	first, second := b.Wait(), b.Wait()
	select {
	case <-first:
		t.Fatal("woken by a ring that was over")
	default:
	}
	b.Ring()
	<-first
	<-second
	select {
	case <-b.Wait():
		t.Error("woken by a ring that was over")
	default:
	}
}
