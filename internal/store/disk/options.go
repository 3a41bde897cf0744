package disk

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Options configures a Store. Start from DefaultOptions.
type Options struct {
	Now    func() time.Time // the clock of retention and expiry
	Logger zerolog.Logger   // what a person should know: files moved aside, a full disk
	FS     vfs.FS           // nil: the directory's own

	// Interval is how long the journal entry of a call may wait for its sync: a power cut takes at most the calls of the last interval, the
	// newest ones. 0: each is synced before it is acknowledged, as adoptions and all other changes always are.
	Interval time.Duration

	Flush      time.Duration // how far the files may be behind; negative: they follow only Sync and Close
	Checkpoint time.Duration // how long the journal may keep entries, and usage figures be behind
	Segment    int64         // bytes of a journal segment; two full ones cause a checkpoint
	LogSegment int64         // bytes of a segment of the call log and of the values
	LogBytes   int64         // bytes of the call log, above which its oldest segment is dropped
	Reserve    uint64        // free bytes on disk below which the store takes no writes
	Sessions   uint64        // bytes of sessions held in memory beside those in use
	Artifacts  uint64        // bytes of artifacts held in memory beside those in use

	recount bool         // ignore the sums in the checkpoint
	order   *locks.Order // panics when locks are taken in the wrong order; nil checks nothing
}

// DefaultOptions returns the options of a daemon.
func DefaultOptions() Options {
	o := Options{
		Now: time.Now, Logger: zerolog.Nop(), Flush: time.Second, Checkpoint: time.Minute, Segment: 8 << 20,
		LogSegment: 16 << 20,
		LogBytes:   512 << 20, Reserve: 16 << 20, Sessions: 16 << 20, Artifacts: 16 << 20,
	}
	if locks.Race {
		o.order = newOrder()
	}
	return o
}

// maxInterval bounds Options.Interval: the files follow the journal after a second.
const maxInterval = time.Second

func (o *Options) validate() error {
	switch {
	case o.Now == nil:
		return errors.New("disk.Options.Now is missing")
	case o.Interval < 0 || o.Interval > maxInterval:
		return errors.New("disk.Options.Interval must be 0 to 1 s")
	case o.Flush == 0 || o.Checkpoint <= 0:
		return errors.New("disk.Options.Flush and Checkpoint must be set")
	case o.Segment < 1<<12 || o.LogSegment < 1<<8 || o.LogBytes < o.LogSegment:
		return errors.New("disk.Options.Segment, LogSegment or LogBytes is too small")
	case o.Sessions == 0 || o.Artifacts == 0:
		return errors.New("disk.Options.Sessions and Artifacts must be set")
	}
	return nil
}
