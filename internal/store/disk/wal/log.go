package wal

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// ErrLost means that an entry which Write accepted without sync may not be on disk. Rotate writes such entries again.
var ErrLost = errors.New("the journal's last entries could not be synced")

// errClosed is returned by operations that need a segment, after Close or while none is open.
var errClosed = errors.New("the journal is closed")

// Log writes a log. Calls of Write must not overlap; other than that its methods may be called concurrently. While Sync
// waits for the disk, Write goes on without sync.
type Log struct {
	fs   vfs.FS
	dir  string
	size int64 // bytes at which a segment is full

	mu   sync.Mutex
	idle sync.Cond // signals that a Sync has ended
	// set while Sync waits for the disk without mu; active does not change meanwhile; guarded by mu, as all below
	syncing bool
	active  *active    // nil after a failure until a new segment is opened, and after Close
	old     []inactive // complete segments that were not cut yet, oldest first
	next    uint64     // lsn of the next entry
	bytes   int64      // size of the frames in old and active
	durable uint64     // lsn up to which all entries are synced
	pending []byte     // frames of the entries after durable, kept for rewriting
	lost    bool       // the pending frames can no longer be synced; Rotate must rewrite them
	closed  bool
}

// New returns a log in an existing directory. It must not be written to before Continue.
func New(fs vfs.FS, dir string, segmentBytes int64) *Log {
	l := &Log{fs: fs, dir: dir, size: segmentBytes, next: 1}
	l.idle.L = &l.mu
	return l
}

// lock locks mu while no Sync is in progress. If two syncs of one file overlapped, an error might be reported to only
// one of them.
func (l *Log) lock() {
	l.mu.Lock()
	l.wait()
}

// wait waits until no Sync is in progress. The caller holds mu, which is released meanwhile.
func (l *Log) wait() {
	for l.syncing {
		l.idle.Wait()
	}
}

// Continue starts a new segment whose first entry is number next, after the existing segments.
func (l *Log) Continue(next uint64, segments []Segment) error {
	l.lock()
	defer l.mu.Unlock()
	l.next, l.durable = next, next-1
	for _, s := range segments {
		if s.First != next { // the new segment reuses the name of an empty one
			l.old = append(l.old, inactive{Segment: s})
		}
	}
	return l.rotate()
}

// Durable returns the lsn up to which all entries are synced.
func (l *Log) Durable() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// Next returns the lsn of the next entry.
func (l *Log) Next() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// Bytes returns the size of the frames that were written since New and not cut.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Writable reports whether a segment is open, that is, whether the last write, sync and Rotate succeeded.
func (l *Log) Writable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active != nil
}

// Closed returns the complete segments that were not cut yet, oldest first.
func (l *Log) Closed() []Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Segment, len(l.old))
	for i, s := range l.old {
		out[i] = s.Segment
	}
	return out
}

// Rotate syncs and closes the active segment and starts a new one, unless the active one is empty. If it fails, the log
// accepts no entries until Rotate succeeds, because the file of the new segment may exist and would invalidate later
// entries of the old one. After a failed sync the new segment begins with the entries that are not durable yet. A crash
// leaves all of them, or the first ones without a gap.
func (l *Log) Rotate() error {
	l.lock()
	defer l.mu.Unlock()
	return l.rotate()
}

// rotate is Rotate for callers that hold mu while no Sync is in progress.
func (l *Log) rotate() error {
	if l.active != nil && l.active.bytes == 0 && l.active.First == l.next {
		return nil
	}
	if l.closed {
		return errClosed
	}
	if l.active != nil && l.durable < l.next-1 {
		if err := l.active.sync(); err != nil {
			l.abandon(false)
			return err
		}
		l.synced(l.next-1, len(l.pending))
	}
	if l.active != nil {
		_ = l.active.file.Close()
		l.old = append(l.old, l.active.inactive)
		l.active = nil
	}
	// After a failed sync this is the number of the first pending entry. The new segment's name invalidates what the
	// old segment has from there on.
	a, err := l.create(l.durable + 1)
	if err != nil {
		return err
	}
	if l.lost {
		if err := errors.Join(a.write(l.pending), a.sync()); err != nil {
			return errors.Join(err, a.file.Close())
		}
		a.bytes = int64(len(l.pending))
		l.bytes += a.bytes
		l.synced(l.next-1, len(l.pending))
		l.lost = false
	}
	l.active = a
	return nil
}

// synced records that the entries up to lsn are durable. Their frames are the first n bytes of pending.
func (l *Log) synced(lsn uint64, n int) {
	l.durable = lsn
	l.pending = append(l.pending[:0], l.pending[n:]...)
}

// Sync waits until the entries up to lsn are durable, and reports whether it synced them itself. Concurrent callers
// share one sync, which covers all entries written before it. After an error, which is ErrLost or comes from the disk,
// the entries since the last successful sync may be lost.
func (l *Log) Sync(lsn uint64) (synced bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.syncing && l.durable < lsn {
		l.idle.Wait()
	}
	switch {
	case l.durable >= lsn:
		return false, nil
	case l.lost:
		return false, ErrLost
	case l.active == nil:
		return false, errClosed
	}
	upTo, bytes := l.next-1, len(l.pending)
	l.syncing = true
	l.mu.Unlock()
	err = l.active.sync() // it returns panics as errors; active stays the same while syncing is set
	l.mu.Lock()
	l.syncing = false
	l.idle.Broadcast()
	if err != nil {
		l.abandon(false)
		return false, err
	}
	l.synced(upTo, bytes)
	return true, nil
}

// abandon closes the active segment after an error. synced reports that the error did not come from a sync; then the
// entries that are not durable yet are synced. After a failed sync, a second one would prove nothing: the entries count
// as lost until Rotate rewrites them.
func (l *Log) abandon(synced bool) {
	a := l.active
	// This is only an attempt. The next segment's number invalidates the rest in any case.
	_ = a.file.Truncate(a.bytes)
	if l.durable < l.next-1 {
		if synced && a.sync() == nil {
			l.synced(l.next-1, len(l.pending))
		} else {
			l.lost = true
		}
	}
	_ = a.file.Close()
	if a.First <= l.durable { // otherwise the next segment gets the same name
		l.old = append(l.old, a.inactive)
	} else {
		l.bytes -= a.bytes
	}
	l.active = nil
}

// Write appends the batch. If sync is set, it also makes the batch and all entries before it durable; otherwise Sync
// does so later. After an error nothing of the batch counts. A new segment, whose number invalidates what may have
// reached the disk, must then be opened, by Rotate or, unless accepted entries are lost, by the next Write.
func (l *Log) Write(b *Batch, sync bool) error {
	if b.Size()-frameHeader > math.MaxUint32 {
		return fmt.Errorf("a batch of %d bytes is too large for the log", b.Size())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// b.seal numbers the entries before wait releases mu, which is why calls of Write must not overlap.
	text := b.seal(l.next)
	if sync || !l.fits(len(text)) {
		l.wait()
	}
	if l.lost {
		return ErrLost
	}
	if !l.fits(len(text)) {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	a := l.active
	if err := a.write(text); err != nil {
		if l.wait(); l.active == a {
			l.abandon(true)
		}
		return err
	}
	if sync {
		if err := a.sync(); err != nil {
			l.abandon(false)
			return err
		}
	}
	a.bytes += int64(len(text))
	l.bytes += int64(len(text))
	l.next += uint64(b.count)
	if sync {
		l.synced(l.next-1, len(l.pending))
	} else {
		l.pending = append(l.pending, text...)
	}
	return nil
}

// fits reports whether the active segment has room for that many bytes. An empty one takes a batch of any size.
func (l *Log) fits(n int) bool {
	return l.active != nil && (l.active.bytes == 0 || l.active.bytes+int64(n) <= l.active.room)
}

// Cut forgets the complete segments that hold only entries up to lsn, and returns them. The caller removes their files
// with Remove.
func (l *Log) Cut(lsn uint64) []Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped := []Segment{}
	for len(l.old) > 0 {
		next := l.next
		if len(l.old) > 1 {
			next = l.old[1].First
		} else if l.active != nil {
			next = l.active.First
		}
		if next > lsn+1 {
			break
		}
		dropped = append(dropped, l.old[0].Segment)
		l.bytes -= l.old[0].bytes
		l.old = l.old[1:]
	}
	return dropped
}

// Close closes the active segment without a sync. Nothing can be written afterwards.
func (l *Log) Close() {
	l.lock()
	defer l.mu.Unlock()
	if l.active != nil {
		_ = l.active.file.Close()
		l.active = nil
	}
	l.closed = true
}
