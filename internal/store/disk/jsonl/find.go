package jsonl

import (
	"context"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// loadOffsets builds the index of the current segment, unless it exists already.
func (l *Log) loadOffsets() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.offsets != nil {
		return nil
	}
	offsets, err := l.scan(l.file(l.number), l.bytes)
	if err != nil {
		return err
	}
	l.offsets = offsets
	return nil
}

// scan returns the offsets of the lines in a file by key.
func (l *Log) scan(name string, size int64) (map[uint64][]int64, error) {
	offsets := map[uint64][]int64{}
	if size == 0 {
		return offsets, nil
	}
	f, err := l.o.Files.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	off := int64(0)
	_, err = Forward(context.Background(), f, 0, size, func(line []byte) (bool, error) {
		for _, k := range l.o.Keys(line) {
			offsets[k] = append(offsets[k], off)
		}
		off += int64(len(line)) + 1
		return false, nil
	})
	return offsets, err
}

// Find calls visit with the lines under a key, newest first, until visit returns true. Keys are hashes, so visit must
// expect lines of other keys.
func (l *Log) Find(key uint64, visit func(line []byte) bool) error {
	return l.FindWithin(key, time.Time{}, time.Time{}, visit)
}

// FindWithin is Find restricted to segments that may hold lines appended between since and until. A zero time is not a
// bound.
func (l *Log) FindWithin(key uint64, since, until time.Time, visit func(line []byte) bool) error {
	if err := l.loadOffsets(); err != nil {
		return err
	}
	l.mu.RLock()
	defer l.mu.RUnlock() // Drop must not remove segments meanwhile
	if done, err := l.findIn(l.file(l.number), l.bytes, l.offsets[key], visit); done || err != nil {
		return err
	}
	for i, seg := range slices.Backward(l.closed) {
		if !seg.Newest.IsZero() && seg.Newest.Before(since) || !until.IsZero() && i > 0 &&
			l.closed[i-1].Newest.After(until) {
			continue
		}
		offsets, err := l.offsetsOf(seg, key)
		if err != nil {
			return err
		}
		if done, err := l.findIn(l.file(seg.number), seg.bytes, offsets, visit); done || err != nil {
			return err
		}
	}
	return nil
}

// offsetsOf returns the offsets of the lines under a key in a closed segment. It rebuilds an index that is missing or
// damaged.
func (l *Log) offsetsOf(seg Segment, key uint64) ([]int64, error) {
	name := l.indexFile(seg.number)
	if f, err := l.o.Files.Open(name, false); err == nil {
		size, err := f.Size()
		offsets, ok := searchIndex(f, size, key)
		_ = f.Close() // it was only read
		if err == nil && ok {
			return offsets, nil
		}
	} else if !vfs.NotExist(err) {
		return nil, err
	}
	all, err := l.scan(l.file(seg.number), seg.bytes) // the index is missing or damaged
	if err != nil {
		return nil, err
	}
	return all[key], l.o.Files.Replace(name, encodeIndex(all))
}

// findIn calls visit with the lines at the offsets, the last first, until visit returns true.
func (l *Log) findIn(name string, size int64, offsets []int64, visit func([]byte) bool) (bool, error) {
	if len(offsets) == 0 {
		return false, nil
	}
	f, err := l.o.Files.Open(name, false)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for _, off := range slices.Backward(offsets) {
		if off < 0 || off >= size {
			continue
		}
		line, err := LineAt(f, off, size)
		if err != nil {
			return false, err
		}
		if visit(line) {
			return true, nil
		}
	}
	return false, nil
}

// Backward calls visit with all lines before a place, the last first, until visit returns true. It reads each segment
// as it is when the walk reaches it, and does not keep the log from growing meanwhile. Segments that are dropped
// meanwhile are skipped.
func (l *Log) Backward(ctx context.Context, before Place, visit func(line []byte) (bool, error)) error {
	l.mu.RLock()
	segments := append(slices.Clone(l.closed), Segment{number: l.number, bytes: l.bytes})
	l.mu.RUnlock()
	for _, seg := range slices.Backward(segments) {
		end := seg.bytes
		if seg.number > before.Segment {
			continue
		}
		if seg.number == before.Segment {
			end = before.Bytes
		}
		if end == 0 {
			continue
		}
		f, err := l.open(seg.number)
		if vfs.NotExist(err) {
			continue // dropped meanwhile
		}
		if err != nil {
			return err
		}
		done, err := Backward(ctx, f, end, func(line []byte, _ int64) (bool, error) { return visit(line) })
		_ = f.Close() // it was only read
		if done || err != nil {
			return err
		}
	}
	return nil
}

// Forward calls visit with the lines from one place up to another, in order, until visit returns true. It does not keep
// the log from growing meanwhile.
func (l *Log) Forward(ctx context.Context, from, end Place, visit func(line []byte) (bool, error)) error {
	l.mu.RLock()
	segments := append(slices.Clone(l.closed), Segment{number: l.number, bytes: l.bytes})
	l.mu.RUnlock()
	for _, seg := range segments {
		start, stop := int64(0), seg.bytes
		if seg.number < from.Segment || seg.number > end.Segment {
			continue
		}
		if seg.number == from.Segment {
			start = from.Bytes
		}
		if seg.number == end.Segment {
			stop = end.Bytes
		}
		f, err := l.open(seg.number)
		if vfs.NotExist(err) {
			continue // dropped meanwhile, or empty
		}
		if err != nil {
			return err
		}
		done, err := Forward(ctx, f, start, stop, visit)
		_ = f.Close() // it was only read
		if done || err != nil {
			return err
		}
	}
	return nil
}

// open opens a segment under its current name, which changes when the segment is closed.
func (l *Log) open(number int) (vfs.File, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.o.Files.Open(l.file(number), false)
}

// Locate returns the place of the newest line under a key for which is returns true, or nil if there is none.
func (l *Log) Locate(key uint64, is func(line []byte) bool) (*Place, error) {
	if err := l.loadOffsets(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	try := func(number int, size int64, offsets []int64) (*Place, error) {
		for _, off := range slices.Backward(offsets) {
			if found, err := l.findIn(l.file(number), size, []int64{off}, is); found || err != nil {
				return &Place{number, off}, err
			}
		}
		return nil, nil
	}
	if at, err := try(l.number, l.bytes, l.offsets[key]); at != nil || err != nil {
		return at, err
	}
	for _, seg := range slices.Backward(l.closed) {
		offsets, err := l.offsetsOf(seg, key)
		if err != nil {
			return nil, err
		}
		if at, err := try(seg.number, seg.bytes, offsets); at != nil || err != nil {
			return at, err
		}
	}
	return nil, nil
}
