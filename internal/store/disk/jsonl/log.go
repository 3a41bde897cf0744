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
	Dir     string // of closed segments, <number>.jsonl, with their indexes, <number>.idx
	Current string // the file of the current segment; "" to keep it in Dir too
	Bytes   int64  // at which a segment is closed

	Keys func(line []byte) []uint64          // under which a line is found again; see Key
	Time func(line []byte) (time.Time, bool) // a moment at which the line was there, if it says one
	Now  func() time.Time                    // the clock
	Lost func(file string, bytes int64)      // called by Open for a file that ends before its place
	Lock func(*locks.RWMutex)                // ranks the log's lock
}

// Log is a log of lines in segments. The newest segment is current. One that is full is closed, with an index beside
// it: its keys and their lines' offsets, sorted. So neither a lookup nor the start reads all lines.
//
// One goroutine at a time may change the log: Open, Append, Publish, Sync, Rotate, SyncNames, Drop, Erase, Repair. The
// other methods may be called at any time.
type Log struct {
	o       Options
	renamed bool // a segment was closed, and its name is not durable yet

	mu      locks.RWMutex
	closed  []Segment          // oldest first; guarded by mu, as all below
	number  int                // of the current segment
	bytes   int64              // of the current segment, visible to readers
	offsets map[uint64][]int64 // the current segment's index; nil until it is asked for
}

// Segment is a closed file of a log.
type Segment struct {
	Newest time.Time // when its last line was appended, or later; zero: not known

	number int
	bytes  int64
}

// Place is a position in a log.
type Place struct {
	Segment int   `json:"segment"`
	Bytes   int64 `json:"bytes"`
}

// New returns a log without lines. Open reads those that are there.
func New(o Options) *Log {
	l := &Log{o: o, number: 1}
	if o.Lock != nil {
		o.Lock(&l.mu)
	}
	return l
}

func (l *Log) file(number int) string {
	if number == l.number && l.o.Current != "" {
		return l.o.Current
	}
	return l.closedFile(number)
}

func (l *Log) closedFile(number int) string {
	return path.Join(l.o.Dir, fmt.Sprintf("%08d.jsonl", number))
}
func (l *Log) indexFile(number int) string {
	return path.Join(l.o.Dir, fmt.Sprintf("%08d.idx", number))
}

// Append writes lines behind the last ones. Readers see them once Publish was called.
func (l *Log) Append(lines *Text) error {
	if len(lines.ends) == 0 {
		return nil
	}
	_, err := write(l.o.Files, l.file(l.number), l.bytes, lines.buf)
	return err
}

// Publish shows readers what Append wrote.
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

// End is where the lines that readers see end.
func (l *Log) End() Place {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return Place{l.number, l.bytes}
}

// First is the number of the oldest segment.
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

// Sync makes durable what was appended and returns where that ends.
func (l *Log) Sync() (Place, error) {
	at := Place{l.number, l.bytes}
	if l.bytes == 0 {
		return at, nil
	}
	return at, Sync(l.o.Files, l.file(l.number))
}

// Rotate closes the current segment when it is full.
func (l *Log) Rotate() error {
	if l.bytes < l.o.Bytes {
		return l.SyncNames()
	}
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

// SyncNames makes a closed segment's name durable, which must be before anything is written to the next one.
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

// startSegment gives the current segment its number and starts the next.
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
