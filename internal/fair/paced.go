package fair

import (
	"context"
	"time"
)

// Paced does heavy work of one owner after another, and has the owner rest after each as long as rest says of the time that it took. It
// returns the error of the work, or the cause of ctx's end when that comes before the owner's turn.
func (l *Lines[K]) Paced(ctx context.Context, owner K, rest func(took time.Duration) time.Duration,
	work func() error) error {
	if err := l.Enter(ctx, owner, 1); err != nil {
		return err
	}
	began := time.Now()
	err := work()
	if d := rest(time.Since(began)); d > 0 {
		time.AfterFunc(d, func() { l.Leave(owner) })
	} else {
		l.Leave(owner)
	}
	return err
}
