package disk

import (
	"context"
	"encoding/binary"
	"slices"
	"time"
)

// loadOffsets makes the current segment's index, if nobody asked for it yet.
func (l *lineLog) loadOffsets() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.offsets != nil {
		return nil
	}
	offsets, err := l.scan(l.file(l.number), l.bytes)
	l.offsets = offsets
	return err
}

func (l *lineLog) scan(name string, size int64) (map[uint64][]int64, error) {
	offsets := map[uint64][]int64{}
	if size == 0 {
		return offsets, nil
	}
	f, err := l.s.fs.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	off := int64(0)
	_, err = forward(context.Background(), f, 0, size, func(line []byte) (bool, error) {
		for _, k := range l.keys(line) {
			offsets[k] = append(offsets[k], off)
		}
		off += int64(len(line)) + 1
		return false, nil
	})
	return offsets, err
}

// indexMagic starts an index file: then follow pairs of a key's hash and an offset, 16 bytes, little-endian, sorted.
const indexMagic = "RJX1\n\n\n\n"

func encodeIndex(offsets map[uint64][]int64) []byte {
	type pair struct {
		key uint64
		off int64
	}
	pairs := []pair{}
	for k, list := range offsets {
		for _, off := range list {
			pairs = append(pairs, pair{k, off})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		switch {
		case a.key < b.key || a.key == b.key && a.off < b.off:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	out := []byte(indexMagic)
	for _, p := range pairs {
		out = binary.LittleEndian.AppendUint64(out, p.key)
		out = binary.LittleEndian.AppendUint64(out, uint64(p.off))
	}
	return out
}

// searchIndex returns the offsets of a key in an index file of that size; ok is false for what is no index.
func searchIndex(f File, size int64, key uint64) (offsets []int64, ok bool) {
	const width = 16
	magic := make([]byte, len(indexMagic))
	if _, err := f.ReadAt(magic, 0); err != nil || string(magic) != indexMagic || (size-int64(len(magic)))%width != 0 {
		return nil, false
	}
	n := int((size - int64(len(magic))) / width)
	pair := make([]byte, width)
	read := func(i int) (uint64, int64, bool) {
		if _, err := f.ReadAt(pair, int64(len(magic))+int64(i)*width); err != nil {
			return 0, 0, false
		}
		return binary.LittleEndian.Uint64(pair), int64(binary.LittleEndian.Uint64(pair[8:])), true
	}
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi) / 2
		k, _, ok := read(mid)
		if !ok {
			return nil, false
		}
		if k < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < n; lo++ {
		k, off, ok := read(lo)
		if !ok {
			return nil, false
		}
		if k != key {
			break
		}
		offsets = append(offsets, off)
	}
	return offsets, true
}

// find visits the lines under a key, newest first, until visit says that it was the right one.
func (l *lineLog) find(key uint64, visit func(line []byte) bool) error {
	return l.findWithin(key, time.Time{}, time.Time{}, visit)
}

// findWithin is find in the segments that may hold what was appended in that span; a zero time is no bound.
func (l *lineLog) findWithin(key uint64, since, until time.Time, visit func(line []byte) bool) error {
	if err := l.loadOffsets(); err != nil {
		return err
	}
	l.mu.RLock()
	defer l.mu.RUnlock() // keeps the segments where they are
	if done, err := l.findIn(l.file(l.number), l.bytes, l.offsets[key], visit); done || err != nil {
		return err
	}
	for i, seg := range slices.Backward(l.closed) {
		if !seg.newest.IsZero() && seg.newest.Before(since) || !until.IsZero() && i > 0 && l.closed[i-1].newest.After(until) {
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

func (l *lineLog) offsetsOf(seg lineSegment, key uint64) ([]int64, error) {
	name := l.indexFile(seg.number)
	if f, err := l.s.fs.Open(name, false); err == nil {
		size, err := f.Size()
		offsets, ok := searchIndex(f, size, key)
		_ = f.Close() // it was only read
		if err == nil && ok {
			return offsets, nil
		}
	} else if !notExist(err) {
		return nil, err
	}
	all, err := l.scan(l.file(seg.number), seg.bytes) // the index is missing or no index: make it again
	if err != nil {
		return nil, err
	}
	return all[key], l.s.write(name, encodeIndex(all))
}

func (l *lineLog) findIn(name string, size int64, offsets []int64, visit func([]byte) bool) (bool, error) {
	if len(offsets) == 0 {
		return false, nil
	}
	f, err := l.s.fs.Open(name, false)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for _, off := range slices.Backward(offsets) {
		if off < 0 || off >= size {
			continue
		}
		line, err := lineAt(f, off, size)
		if err != nil {
			return false, err
		}
		if visit(line) {
			return true, nil
		}
	}
	return false, nil
}

// back visits all lines, newest first, from before the line at the place (nil: from the end) on.
func (l *lineLog) back(ctx context.Context, before *place, visit func(line []byte) (bool, error)) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	segments := append(slices.Clone(l.closed), lineSegment{number: l.number, bytes: l.bytes})
	for _, seg := range slices.Backward(segments) {
		end := seg.bytes
		if before != nil {
			if seg.number > before.Segment {
				continue
			}
			if seg.number == before.Segment {
				end = before.Bytes
			}
		}
		if end == 0 {
			continue
		}
		f, err := l.s.fs.Open(l.file(seg.number), false)
		if err != nil {
			return err
		}
		done, err := backward(ctx, f, end, func(line []byte, _ int64) (bool, error) { return visit(line) })
		_ = f.Close() // it was only read
		if done || err != nil {
			return err
		}
	}
	return nil
}

// locate finds where the line under a key starts.
func (l *lineLog) locate(key uint64, is func(line []byte) bool) (*place, error) {
	if err := l.loadOffsets(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	try := func(number int, size int64, offsets []int64) (*place, error) {
		for _, off := range slices.Backward(offsets) {
			if found, err := l.findIn(l.file(number), size, []int64{off}, is); found || err != nil {
				return &place{number, off}, err
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
