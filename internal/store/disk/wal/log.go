package wal

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// ErrLost says that an entry which Write accepted without sync may not be on disk. Rotate writes it anew.
var ErrLost = errors.New("the journal's last entries could not be synced")

var errClosed = errors.New("the journal is closed")

// Log writes a log. It is safe for concurrent use; while Sync waits for the disk, Write goes on without sync.
type Log struct {
	fs   vfs.FS
	dir  string
	size int64 // of a segment

	mu   sync.Mutex
	idle sync.Cond // signals that no Sync is under way
	// Sync waits for the disk without mu; active stays the same meanwhile; guarded by mu, as all below
	syncing bool
	active  *active    // nil after a failure, until Rotate has opened a new segment
	old     []inactive // closed segments that were not cut yet, oldest first
	next    uint64     // lsn of the next entry
	bytes   int64      // of frames in old and active
	durable uint64     // lsn up to which all entries are on disk
	pending []byte     // the frames behind it, as they were written
	lost    bool       // the pending frames cannot be synced any more
	closed  bool
}

// New returns a log in the directory, which exists. It writes nothing before Continue.
func New(fs vfs.FS, dir string, segmentBytes int64) *Log {
	l := &Log{fs: fs, dir: dir, size: segmentBytes, next: 1}
	l.idle.L = &l.mu
	return l
}

// lock locks mu when no Sync is under way: two syncs of one file at a time could each take the other's error for its own success.
func (l *Log) lock() {
	l.mu.Lock()
	l.wait()
}

func (l *Log) wait() {
	for l.syncing {
		l.idle.Wait()
	}
}

// Continue has the log go on with the entry next behind the segments that are there.
func (l *Log) Continue(next uint64, segments []Segment) error {
	l.lock()
	defer l.mu.Unlock()
	l.next, l.durable = next, next-1
	for _, s := range segments {
		if s.First != next { // an empty one gives its name to the next segment
			l.old = append(l.old, inactive{Segment: s})
		}
	}
	return l.rotate()
}

// Durable returns the lsn up to which all entries are on disk.
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

// Bytes returns how many bytes were written and not cut since New.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Writable reports whether the last write and the last Rotate succeeded.
func (l *Log) Writable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active != nil
}

// Closed lists the segments that are complete and were not cut yet, oldest first.
func (l *Log) Closed() []Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Segment, len(l.old))
	for i, s := range l.old {
		out[i] = s.Segment
	}
	return out
}

// Rotate starts a new segment, unless the active one is empty. When that fails the log takes no more entries until
// Rotate succeeds: the new segment's file may be there, and would make void what the old one took from here on. After a failed sync the new
// segment begins with the entries that were to be synced: on disk they are there whole, or missing from some entry on.
func (l *Log) Rotate() error {
	l.lock()
	defer l.mu.Unlock()
	return l.rotate()
}

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

// synced notes that the entries up to lsn are on disk, which are the first n bytes of pending.
func (l *Log) synced(lsn uint64, n int) {
	l.durable = lsn
	l.pending = append(l.pending[:0], l.pending[n:]...)
}

// Sync returns when the entries up to lsn are durable, and whether it synced them itself. Those who wait at the same time share a sync, of
// all that was written before it. After an error, ErrLost or one of the disk, the entries since the last sync may be lost.
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
	err = l.active.sync() // does not panic
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

// abandon closes the active segment after an error. Its entries that were not synced are tried once more if it was not a sync that failed:
// after that a second one says nothing, and they are lost until Rotate writes them anew.
func (l *Log) abandon(synced bool) {
	a := l.active
	_ = a.file.Truncate(a.bytes) // an attempt: the next segment's number is what counts
	if l.durable < l.next-1 {
		if synced && a.sync() == nil {
			l.synced(l.next-1, len(l.pending))
		} else {
			l.lost = true
		}
	}
	_ = a.file.Close()
	if a.First <= l.durable { // else it gives its name to the next
		l.old = append(l.old, a.inactive)
	} else {
		l.bytes -= a.bytes
	}
	l.active = nil
}

// Write appends the batch, and makes it and all before it durable if sync is set; Sync does so later. After an error nothing of the batch
// counts, and the log takes no more until Rotate has opened another segment, whose number makes void what may have reached the disk.
func (l *Log) Write(b *Batch, sync bool) error {
	if b.Size()-frameHeader > math.MaxUint32 {
		return fmt.Errorf("a batch of %d bytes is too large for the log", b.Size())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
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

// fits reports whether the active segment has room for so many bytes.
func (l *Log) fits(n int) bool {
	return l.active != nil && (l.active.bytes == 0 || l.active.bytes+int64(n) <= l.active.room)
}

// Cut drops the segments that hold only entries up to lsn. The caller removes their files, which Remove does.
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

// Close closes the active segment without a sync; nothing can be written afterwards.
func (l *Log) Close() {
	l.lock()
	defer l.mu.Unlock()
	if l.active != nil {
		_ = l.active.file.Close()
		l.active = nil
	}
	l.closed = true
}
