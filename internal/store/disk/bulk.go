package disk

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
)

// Of the time between two large files of one owner, a fifth at most is theirs on a disk that others want.
const (
	bulkRest    = 4           // times as long as a file took
	longestBulk = time.Second // that one rests
)

// bulk brings the bytes of files to the disk. The disk is also that of the journal: each commit that falls into the sync of megabytes waits
// for its end. So the files of one owner are synced one after another, and rest in between while calls without files commit; without
// the rest, one owner's bodies of 4 MB made another's warm calls six to twelve times as slow. Owners do not wait for each other, and who
// is alone does not rest. The zero value is ready.
type bulk struct {
	lines fair.Lines[agent.Owner]
	light atomic.Int64 // commits of calls without files
}

// sync runs the sync of an owner's file when it is its turn. It returns the cause of ctx's end when that comes first.
func (b *bulk) sync(ctx context.Context, owner agent.Owner, sync func() error) error {
	before := b.light.Load()
	return b.lines.Paced(ctx, owner, func(took time.Duration) time.Duration {
		if b.light.Load() == before {
			return 0
		}
		return min(bulkRest*took, longestBulk)
	}, sync)
}
