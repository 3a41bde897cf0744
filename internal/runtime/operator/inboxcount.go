package operator

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// InboxWaiting is the type of the events of InboxCounts. Their data is {"waiting": 3}.
const InboxWaiting = "inbox.waiting"

// How often InboxCounts counts. What the change feed does not announce are decisions about recommendations by other replicas.
const (
	recountRest  = time.Second // after a count, whatever changes
	recountShare = 20          // a count rests so many times as long as it took, if that is more
	recountAtAll = 15 * time.Second
)

// InboxCounts passes the number of entries of the inbox to emit, at once and whenever it has changed, until emit fails or ctx ends. It
// counts when something changed that may wait.
func (o *Operator) InboxCounts(ctx context.Context, emit func(progress.Event) error) error {
	ctx, end := o.whileItLives(ctx)
	defer end()
	for last := -1; ; {
		changed, decided, began := o.overview.Changed(), o.advised.Wait(), time.Now()
		n, err := o.inboxCount(ctx)
		if err != nil {
			return err
		}
		if n != last {
			last = n
			if err := emit(progress.Event{Type: InboxWaiting,
				Data: json.RawMessage(`{"waiting":` + strconv.Itoa(n) + `}`)}); err != nil {
				return err
			}
		}
		if err := pause(ctx, max(recountRest, recountShare*time.Since(began)), nil, nil); err != nil {
			return err
		}
		if err := pause(ctx, recountAtAll, changed, decided); err != nil {
			return err
		}
	}
}

// inboxCount is how many entries the inbox has, under the policy that is stored: one that another replica changed is in force here a moment later.
func (o *Operator) inboxCount(ctx context.Context) (int, error) {
	policy, _, err := o.store.Policy(ctx)
	if err != nil {
		return 0, err
	}
	waits, err := o.overview.Waits(ctx, &policy)
	if err != nil {
		return 0, err
	}
	advice, err := o.OpenRecommendations(ctx)
	return len(waits) + advice, err
}

// pause returns nil after that time, or when one of the channels has something, and the cause of the context's end when that comes first.
func pause(ctx context.Context, most time.Duration, a, b <-chan struct{}) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-a:
	case <-b:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
