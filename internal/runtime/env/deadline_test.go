package env

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSharedDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d sharedDeadline
		first := d.context(time.Second)
		time.Sleep(time.Second)
		if again := d.context(time.Second); again != first {
			t.Error("got another context within the timeout")
		}
		time.Sleep(time.Millisecond)
		second := d.context(time.Second)
		if second == first || first.Err() != nil {
			t.Errorf("after the timeout: got the same context %v, or it has ended: %v", second == first, first.Err())
		}
		if end, ok := second.Deadline(); !ok || time.Until(end) < time.Second {
			t.Errorf("got a deadline in %s, want at least a second", time.Until(end))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if first.Err() == nil || second.Err() != nil {
			t.Errorf("after two timeouts: got %v, %v, want an end of the first only", first.Err(), second.Err())
		}
		d.cancel()
	})
}
