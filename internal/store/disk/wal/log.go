package wal

import (
	"errors"
	"fmt"
	"math"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Log writes a log. It is not safe for concurrent use.
type Log struct {
	fs     vfs.FS
	dir    string
	size   int64      // of a segment
	active *active    // nil after a failure, until Rotate has opened a new segment
	old    []inactive // closed segments that were not cut yet, oldest first
	next   uint64     // lsn of the next entry
	bytes  int64      // of frames in old and active
}

// active is the segment that is written to.
type active struct {
	inactive
	file vfs.File
	room int64 // reserved bytes
}

type inactive struct {
	Segment
	bytes int64
}

// New returns a log in the directory, which exists. It writes nothing before Continue.
func New(fs vfs.FS, dir string, segmentBytes int64) *Log {
	return &Log{fs: fs, dir: dir, size: segmentBytes}
}

// Continue has the log go on with the entry next behind the segments that are there.
func (l *Log) Continue(next uint64, segments []Segment) error {
	l.next = next
	for _, s := range segments {
		if s.First != next { // an empty one gives its name to the next segment
			l.old = append(l.old, inactive{Segment: s})
		}
	}
	return l.Rotate()
}

// Next returns the lsn of the next entry.
func (l *Log) Next() uint64 { return l.next }

// Bytes returns how many bytes were written and not cut since New.
func (l *Log) Bytes() int64 { return l.bytes }

// Writable reports whether the last write and the last Rotate succeeded.
func (l *Log) Writable() bool { return l.active != nil }

// Closed lists the segments that are complete and were not cut yet, oldest first.
func (l *Log) Closed() []Segment {
	out := make([]Segment, len(l.old))
	for i, s := range l.old {
		out[i] = s.Segment
	}
	return out
}

// Rotate starts a new segment, unless the active one is empty. When that fails the log takes no more entries until
// Rotate succeeds: the new segment's file may be there, and would make void what the old one took from here on.
func (l *Log) Rotate() error {
	if l.active != nil && l.active.bytes == 0 && l.active.First == l.next {
		return nil
	}
	if l.active != nil {
		_ = l.active.file.Close() // all of it is on disk: each frame was synced
		l.old = append(l.old, l.active.inactive)
		l.active = nil
	}
	a, err := l.create(l.next)
	if err != nil {
		return err
	}
	l.active = a
	return nil
}

// create creates a segment's file, with space reserved for its entries while the disk has it.
func (l *Log) create(first uint64) (*active, error) {
	name := segmentName(l.dir, first)
	f, err := l.fs.Open(name, true)
	if err != nil {
		return nil, err
	}
	const least = 64 << 10
	room := l.size
	err = f.Truncate(0)
	for err == nil {
		if err = f.Preallocate(room); err == nil || room <= least {
			break
		}
		room /= 4 // a small disk is no reason not to start
		err = nil
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = l.fs.SyncDir(l.dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &active{inactive: inactive{Segment: Segment{Name: name, First: first}}, file: f, room: room}, nil
}

// Write makes the batch durable. After an error nothing of it counts, and the log takes no more until Rotate has opened
// another segment, whose number makes void what may have reached the disk.
func (l *Log) Write(b *Batch) error {
	if b.Size()-frameHeader > math.MaxUint32 {
		return fmt.Errorf("a batch of %d bytes is too large for the log", b.Size())
	}
	text := b.seal(l.next)
	if l.active == nil || l.active.bytes > 0 && l.active.bytes+int64(len(text)) > l.active.room {
		if err := l.Rotate(); err != nil {
			return err
		}
	}
	a := l.active
	if err := a.append(text); err != nil {
		_ = a.file.Truncate(a.bytes) // an attempt: the next segment's number is what counts
		_ = a.file.Close()
		if a.bytes > 0 { // an empty one gives its name to the next
			l.old = append(l.old, a.inactive)
		}
		l.active = nil
		return err
	}
	a.bytes += int64(len(text))
	l.bytes += int64(len(text))
	l.next += uint64(b.count)
	return nil
}

// append writes a frame durably at the segment's end. A panic counts as a failed write: what reached the disk is
// unknown.
func (a *active) append(frame []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("writing the journal panicked: %v", v)
		}
	}()
	if _, err := a.file.WriteAt(frame, a.bytes); err != nil {
		return err
	}
	return a.file.Sync()
}

// Cut drops the segments that hold only entries up to lsn. The caller removes their files, which Remove does.
func (l *Log) Cut(lsn uint64) []Segment {
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

// Close closes the active segment; nothing can be written afterwards.
func (l *Log) Close() {
	if l.active != nil {
		_ = l.active.file.Close() // each frame in it was synced
		l.active = nil
	}
}

// Remove removes the files of segments.
func Remove(fs vfs.FS, dir string, segments []Segment) error {
	if len(segments) == 0 {
		return nil
	}
	for _, s := range segments {
		if err := fs.Remove(s.Name); err != nil && !vfs.NotExist(err) {
			return err
		}
	}
	return fs.SyncDir(dir)
}
