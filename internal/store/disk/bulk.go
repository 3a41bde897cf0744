package disk

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
)

// An owner's files occupy a disk that others want for at most a fifth of the time.
const (
	bulkRest    = 4           // rest after a file, as a multiple of the time it took
	longestBulk = time.Second // longest rest after a file
)

// bulk syncs the bytes of files. The journal is on the same disk, and a commit that coincides with the sync of
// megabytes waits for the end of that sync. Files of one owner are therefore synced one after another, with a rest
// after each while calls without files commit. Without the rest, one owner's bodies of 4 MB made another owner's warm
// calls six to twelve times slower. Owners do not wait for each other, and an owner that is alone does not rest. The
// zero value is ready to use.
type bulk struct {
	lines fair.Lines[agent.Owner]
	light atomic.Int64 // number of commits without files
}

// sync runs sync for a file of the owner in its turn. If ctx ends first, it returns the cause.
func (b *bulk) sync(ctx context.Context, owner agent.Owner, sync func() error) error {
	before := b.light.Load()
	return b.lines.Paced(ctx, owner, func(took time.Duration) time.Duration {
		if b.light.Load() == before {
			return 0
		}
		return min(bulkRest*took, longestBulk)
	}, sync)
}
