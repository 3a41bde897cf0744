package jsonl

import (
	"fmt"
	"path"
	"time"

	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Options configures a Log.
type Options struct {
	Files   *vfs.Replacer
	Dir     string // directory of the closed segments, <number>.jsonl, and their indexes, <number>.idx
	Current string // file of the current segment; "" keeps it in Dir as well
	Bytes   int64  // size at which a segment is closed

	Keys func(line []byte) []uint64 // returns the keys under which Find finds the line; see Key
	// returns a time from the line that is not before its append, if it has one
	Time func(line []byte) (time.Time, bool)
	Now  func() time.Time // the clock
	// called by Open with a file that ends before its place, and the missing bytes; may be nil
	Lost func(file string, bytes int64)
	Lock func(*locks.RWMutex) // ranks the log's lock; may be nil
}

// Log is a log of lines in segments. The newest segment is the current one. When it is full, it is closed and gets an
// index: its keys and the offsets of their lines, sorted. Neither a lookup nor a start therefore reads all lines.
//
// Only one goroutine at a time may change the log, by Open, Append, Publish, Sync, Rotate, SyncNames, Drop, Erase or
// Repair. The other methods may be called at any time.
type Log struct {
	o       Options
	renamed bool // a segment was closed and its name is not durable yet

	mu      locks.RWMutex
	closed  []Segment          // oldest first; guarded by mu, as all below
	number  int                // of the current segment
	bytes   int64              // of the current segment, as far as readers see it
	offsets map[uint64][]int64 // index of the current segment; nil until it is needed
}

// Segment is a closed segment of a log.
type Segment struct {
	Newest time.Time // not before its last line was appended; zero if unknown

	number int
	bytes  int64
}

// Place is a position in a log: an offset in bytes in a segment.
type Place struct {
	Segment int   `json:"segment"`
	Bytes   int64 `json:"bytes"`
}

// New returns a log without lines. Open finds the existing ones.
func New(o Options) *Log {
	l := &Log{o: o, number: 1}
	if o.Lock != nil {
		o.Lock(&l.mu)
	}
	return l
}

// file returns the name of a segment's file, which changes when the segment is closed if Current is set.
func (l *Log) file(number int) string {
	if number == l.number && l.o.Current != "" {
		return l.o.Current
	}
	return l.closedFile(number)
}

// closedFile returns the name of a closed segment's file.
func (l *Log) closedFile(number int) string {
	return path.Join(l.o.Dir, fmt.Sprintf("%08d.jsonl", number))
}
func (l *Log) indexFile(number int) string {
	return path.Join(l.o.Dir, fmt.Sprintf("%08d.idx", number))
}

// Append writes lines after the last ones. Readers see them after Publish. A failed Append may be repeated.
func (l *Log) Append(lines *Text) error {
	if len(lines.ends) == 0 {
		return nil
	}
	_, err := write(l.o.Files, l.file(l.number), l.bytes, lines.buf)
	return err
}

// Publish makes lines visible that Append wrote.
func (l *Log) Publish(lines *Text) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.offsets != nil {
		lines.each(func(line []byte, off int64) {
			for _, k := range l.o.Keys(line) {
				l.offsets[k] = append(l.offsets[k], l.bytes+off)
			}
		})
	}
	l.bytes += int64(len(lines.buf))
}

// End returns the place after the last line that readers see.
func (l *Log) End() Place {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return Place{l.number, l.bytes}
}

// First returns the number of the oldest segment.
func (l *Log) First() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.closed) > 0 {
		return l.closed[0].number
	}
	return l.number
}

// Empty reports whether the log holds no line.
func (l *Log) Empty() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.closed) == 0 && l.bytes == 0
}

// Sync makes the appended lines durable and returns the place after them.
func (l *Log) Sync() (Place, error) {
	at := Place{l.number, l.bytes}
	if l.bytes == 0 {
		return at, nil
	}
	return at, Sync(l.o.Files, l.file(l.number))
}

// Rotate closes the current segment if it is full.
func (l *Log) Rotate() error {
	if l.bytes < l.o.Bytes {
		return l.SyncNames()
	}
	// The lines and the index must be durable before the segment is closed. A closed segment is not synced again.
	if _, err := l.Sync(); err != nil {
		return err
	}
	if err := l.loadOffsets(); err != nil {
		return err
	}
	if err := l.o.Files.Replace(l.indexFile(l.number), encodeIndex(l.offsets)); err != nil {
		return err
	}
	if err := l.startSegment(); err != nil {
		return err
	}
	return l.SyncNames()
}

// SyncNames makes the name of a closed segment durable. This must happen before anything is written to the next
// segment.
func (l *Log) SyncNames() error {
	if !l.renamed {
		return nil
	}
	for _, dir := range []string{l.o.Dir, path.Dir(l.file(l.number))} {
		if err := l.o.Files.SyncDir(dir); err != nil {
			return err
		}
	}
	l.renamed = false
	return nil
}

// startSegment closes the current segment, gives it its numbered name and starts the next one.
func (l *Log) startSegment() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.o.Current != "" {
		if err := l.o.Files.Rename(l.o.Current, l.closedFile(l.number)); err != nil {
			return err
		}
	}
	l.closed = append(l.closed, Segment{number: l.number, bytes: l.bytes, Newest: l.o.Now()})
	l.number++
	l.bytes = 0
	l.offsets = map[uint64][]int64{}
	l.renamed = true
	return nil
}
