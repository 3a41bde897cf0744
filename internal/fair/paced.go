package fair

import (
	"context"
	"time"
)

// Paced runs an owner's heavy work one piece at a time. After each piece the owner's place stays taken for as long as
// rest returns for the time that the work took. Paced itself does not wait for the rest. It returns the error of work,
// or the cause of ctx's end if ctx ends before the owner's turn.
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
