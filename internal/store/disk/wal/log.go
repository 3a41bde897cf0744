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

	durable uint64 // lsn up to which all entries are on disk
	lost    bool   // entries that Write accepted without sync may not be on disk, and cannot be synced any more
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
	l.next, l.durable = next, next-1
	for _, s := range segments {
		if s.First != next { // an empty one gives its name to the next segment
			l.old = append(l.old, inactive{Segment: s})
		}
	}
	return l.Rotate()
}

// Durable returns the lsn up to which all entries are on disk, unless Lost.
func (l *Log) Durable() uint64 { return l.durable }

// Lost reports whether entries that were accepted without a sync may not be on disk, and cannot be synced any more, since an operation on
// their segment failed. It remains so until Found.
func (l *Log) Lost() bool { return l.lost }

// Found notes that what the lost entries say is on disk elsewhere.
func (l *Log) Found() { l.lost = false }

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
	if err := l.Sync(); err != nil {
		return err
	}
	if l.active != nil {
		_ = l.active.file.Close()
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

// Sync makes all entries durable. After an error those since the last sync may be lost.
func (l *Log) Sync() error {
	if l.active == nil || l.durable == l.next-1 {
		return nil
	}
	if err := l.active.sync(); err != nil {
		l.abandon(false)
		return err
	}
	l.durable = l.next - 1
	return nil
}

// abandon closes the active segment after an error. Its entries that were not synced are tried once more if it was not a sync that failed:
// after that a second one says nothing.
func (l *Log) abandon(synced bool) {
	a := l.active
	_ = a.file.Truncate(a.bytes) // an attempt: the next segment's number is what counts
	if l.durable < l.next-1 {
		l.lost = l.lost || !synced || a.sync() != nil
		l.durable = l.next - 1
	}
	_ = a.file.Close()
	if a.bytes > 0 { // an empty one gives its name to the next
		l.old = append(l.old, a.inactive)
	}
	l.active = nil
}

// Write appends the batch, and makes it and all before it durable if sync is set; Sync does so later. After an error nothing of the batch
// counts, and the log takes no more until Rotate has opened another segment, whose number makes void what may have reached the disk.
func (l *Log) Write(b *Batch, sync bool) error {
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
	if err := a.write(text); err != nil {
		l.abandon(true)
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
		l.durable = l.next - 1
	}
	return nil
}

// write writes a frame at the segment's end. A panic counts as a failed write: what reached the disk is unknown.
func (a *active) write(frame []byte) (err error) {
	defer failed(&err)
	_, err = a.file.WriteAt(frame, a.bytes)
	return err
}

func (a *active) sync() (err error) {
	defer failed(&err)
	return a.file.Sync()
}

// failed makes a panic an error.
func failed(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("writing the journal panicked: %v", v)
	}
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

// Close closes the active segment without a sync; nothing can be written afterwards.
func (l *Log) Close() {
	if l.active != nil {
		_ = l.active.file.Close()
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
