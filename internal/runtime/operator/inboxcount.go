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

// Intervals of InboxCounts. The last one catches decisions about recommendations by other replicas, which the change
// feed does not announce.
const (
	recountRest  = time.Second      // least pause after a count
	recountShare = 20               // least pause in multiples of the count's duration
	recountAtAll = 15 * time.Second // longest pause
)

// InboxCounts passes the number of inbox entries to emit, at once and after each change, until emit fails or ctx ends.
// It counts after changes that may affect the inbox.
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

// inboxCount returns the number of inbox entries under the stored policy. A change by another replica takes effect here
// only a moment later.
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

// pause waits for that time, or until one of the channels has a value. It returns the cause of ctx's end if that comes
// first.
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
