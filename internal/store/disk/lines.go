package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"sync"
	"time"
)

// lineLog is a log of JSON lines in segments, found again by key: the call log and the values. The newest segment is
// current; a segment that is full is closed, with an index beside it: its keys' hashes and their lines' offsets,
// sorted. So neither a lookup nor the start reads the lines. Only the flusher appends.
type lineLog struct {
	s       *Store
	dir     string // of closed segments, <number>.jsonl and <number>.idx
	current string // the file of the current segment; "" to keep it in dir too
	size    int64  // at which a segment is closed
	keys    func(line []byte) []uint64
	mu      sync.RWMutex
	closed  []lineSegment      // oldest first
	number  int                // of the current segment
	bytes   int64              // of the current segment, visible to readers
	renamed bool               // a segment was closed, and its name is not durable yet
	offsets map[uint64][]int64 // the current segment's index; nil until it is asked for
}

type lineSegment struct {
	number int
	bytes  int64
	newest time.Time // when its last line was appended, or later; zero: not known
}

// place is a position in a line log.
type place struct {
	Segment int   `json:"segment"`
	Bytes   int64 `json:"bytes"`
}

func (l *lineLog) file(number int) string {
	if number == l.number && l.current != "" {
		return l.current
	}
	return fmt.Sprintf("%s/%08d.jsonl", l.dir, number)
}

func (l *lineLog) indexFile(number int) string { return fmt.Sprintf("%s/%08d.idx", l.dir, number) }

func hashKey(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // a hash takes everything
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// open finds the segments and takes the log back to the place, when there is one: what stands behind it comes again
// from the journal.
func (l *lineLog) open(at *place) error {
	names, err := l.s.fs.List(l.dir)
	if err != nil && !notExist(err) {
		return err
	}
	var numbers []int
	for _, name := range names {
		var n int
		if _, err := fmt.Sscanf(name, "%08d.jsonl", &n); err == nil && name == fmt.Sprintf("%08d.jsonl", n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	l.number = 1
	if n := len(numbers); n > 0 {
		l.number = numbers[n-1]
		if l.current != "" {
			l.number++
		}
	}
	if at != nil && at.Segment > 0 {
		if err := l.rollBack(numbers, at); err != nil {
			return err
		}
	}
	l.closed = nil
	for _, n := range numbers {
		if n >= l.number {
			break
		}
		info, err := l.s.fs.Stat(l.file(n))
		if err != nil {
			return err
		}
		newest, err := l.newest(l.file(n), info)
		if err != nil {
			return err
		}
		l.closed = append(l.closed, lineSegment{number: n, bytes: info.Size, newest: newest})
	}
	info, err := l.s.fs.Stat(l.file(l.number))
	if err != nil && !notExist(err) {
		return err
	}
	l.bytes = info.Size
	if at == nil {
		return l.trim()
	}
	if at.Segment > 0 {
		l.bytes, err = l.s.mendTail(l.file(l.number), l.bytes, at.Bytes)
	}
	return err
}

// newest reads out of a segment's last line since when it holds nothing new; an erased line does not tell, but the
// file's time then does.
func (l *lineLog) newest(name string, info FileInfo) (time.Time, error) {
	f, err := l.s.fs.Open(name, false)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	at := info.ModTime
	_, err = backward(context.Background(), f, info.Size, func(line []byte, _ int64) (bool, error) {
		v := struct {
			At        int64     `json:"at"`
			Timestamp time.Time `json:"timestamp"`
		}{}
		if json.Unmarshal(line, &v) == nil && v.At > 0 {
			at = time.UnixMilli(v.At)
		} else if !v.Timestamp.IsZero() {
			at = v.Timestamp.Add(commitSlack)
		}
		return true, nil
	})
	return at, err
}

// rollBack undoes what was appended and closed after the place.
func (l *lineLog) rollBack(numbers []int, at *place) error {
	for _, n := range numbers {
		if n > at.Segment {
			if err := l.s.fs.Remove(fmt.Sprintf("%s/%08d.jsonl", l.dir, n)); err != nil {
				return err
			}
		}
		if n >= at.Segment {
			if err := l.s.fs.Remove(l.indexFile(n)); err != nil && !notExist(err) {
				return err
			}
		}
	}
	l.number = at.Segment
	if l.current != "" && slices.Contains(numbers, at.Segment) {
		if err := l.s.fs.Rename(fmt.Sprintf("%s/%08d.jsonl", l.dir, at.Segment), l.current); err != nil {
			return err
		}
	}
	return l.cutTo(at.Bytes)
}

// cutTo cuts the current segment off.
func (l *lineLog) cutTo(size int64) error {
	info, err := l.s.fs.Stat(l.file(l.number))
	if notExist(err) || err == nil && info.Size <= size {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := l.s.fs.Open(l.file(l.number), false)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

// trim cuts off a torn last line, when no checkpoint says where the lines end.
func (l *lineLog) trim() error {
	if l.bytes == 0 {
		return nil
	}
	data, err := l.s.fs.ReadFile(l.file(l.number))
	if err != nil {
		return err
	}
	if i := bytes.LastIndexByte(data, '\n'); i+1 < len(data) {
		l.bytes = int64(i + 1)
		return l.cutTo(l.bytes)
	}
	return nil
}

// append writes lines behind the last ones. They are visible from publish on.
func (l *lineLog) append(lines [][]byte) (grown int64, err error) {
	if len(lines) == 0 {
		return 0, nil
	}
	return l.s.appendLines(l.file(l.number), l.bytes, lines)
}

// publish shows readers what append wrote.
func (l *lineLog) publish(lines [][]byte, grown int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.offsets != nil {
		off := l.bytes
		for _, line := range lines {
			for _, k := range l.keys(line) {
				l.offsets[k] = append(l.offsets[k], off)
			}
			off += int64(len(line)) + 1
		}
	}
	l.bytes += grown
}

// sync makes what was appended durable and says where that ends.
func (l *lineLog) sync() (place, error) {
	at := place{l.number, l.bytes}
	if l.bytes == 0 {
		return at, nil
	}
	name := l.file(l.number)
	f, err := l.s.fs.Open(name, false)
	if err != nil {
		return at, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return at, err
	}
	return at, l.s.fs.SyncDir(path.Dir(name))
}

// rotate closes the current segment when it is full: its index is written first, and then it gets its number.
func (l *lineLog) rotate() error {
	if l.bytes < l.size {
		return l.settle()
	}
	if _, err := l.sync(); err != nil {
		return err
	}
	if err := l.loadOffsets(); err != nil {
		return err
	}
	if err := l.s.write(l.indexFile(l.number), encodeIndex(l.offsets)); err != nil {
		return err
	}
	if err := l.turn(); err != nil {
		return err
	}
	return l.settle()
}

// settle makes a segment's new name durable, before anything is written under the old one.
func (l *lineLog) settle() error {
	if !l.renamed {
		return nil
	}
	if err := errors.Join(l.s.fs.SyncDir(l.dir), l.s.fs.SyncDir(path.Dir(l.file(l.number)))); err != nil {
		return err
	}
	l.renamed = false
	return nil
}

// turn gives the current segment its number and starts the next.
func (l *lineLog) turn() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != "" {
		if err := l.s.fs.Rename(l.current, fmt.Sprintf("%s/%08d.jsonl", l.dir, l.number)); err != nil {
			return err
		}
	}
	l.closed = append(l.closed, lineSegment{number: l.number, bytes: l.bytes, newest: l.s.now()})
	l.number++
	l.bytes = 0
	l.offsets = map[uint64][]int64{}
	l.renamed = true
	return nil
}
