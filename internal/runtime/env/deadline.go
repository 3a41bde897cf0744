package env

import (
	"context"
	"sync"
	"time"
)

// sharedDeadline hands out contexts with a deadline. All callers within one timeout share a context, because one per
// call would cost several allocations and a timer. The zero value is ready.
type sharedDeadline struct {
	mu     sync.Mutex
	ctx    context.Context // guarded by mu, as are the fields below
	renew  time.Time
	cancel context.CancelFunc // of ctx; earlier contexts end by their deadlines
}

// context returns a context that ends after one to two timeouts.
func (d *sharedDeadline) context(timeout time.Duration) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.ctx == nil || now.After(d.renew) {
		d.ctx, d.cancel = context.WithTimeout(context.Background(), 2*timeout)
		d.renew = now.Add(timeout)
	}
	return d.ctx
}
