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
	Now    func() time.Time // the clock for retention and expiry; required
	Logger zerolog.Logger   // receives what an operator should know, such as damaged files or a full disk
	FS     vfs.FS           // nil means the file system of the directory

	// Interval is how long the journal entry of a call may wait for its sync. A power cut loses at most the calls of
	// the last interval. With 0, each call is synced before it is acknowledged. Adoptions and all other changes, except
	// settlements of model requests, are always synced first.
	Interval time.Duration

	Flush      time.Duration // how far the files may lag; negative means that only Sync and Close write them
	Checkpoint time.Duration // how long the journal may keep entries, and usage figures may lag
	Segment    int64         // size of a journal segment in bytes; two full ones trigger a checkpoint
	LogSegment int64         // size of a segment of the call log or of the values, in bytes
	LogBytes   int64         // bytes of the call log above which its oldest segments are dropped
	Reserve    uint64        // free bytes on disk below which the store accepts no writes
	Sessions   uint64        // bytes of sessions cached in memory in addition to those in use
	Artifacts  uint64        // bytes of artifacts cached in memory in addition to those in use

	recount bool         // ignore the byte counts in the checkpoint and count again
	order   *locks.Order // panics on a wrong lock order; nil checks nothing
}

// DefaultOptions returns the options of a daemon. Builds with the race detector check the order of locks.
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

// maxInterval bounds Options.Interval, because the files follow the journal after a second.
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
