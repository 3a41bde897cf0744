package disk

import (
	"bytes"
	"context"
	"encoding/binary"
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
	return nil
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

// reaches says how far back the log goes: no line is about a call that ended before. Zero: it is empty.
func (l *lineLog) reaches() (time.Time, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	number, size := l.number, l.bytes
	if len(l.closed) > 0 {
		number, size = l.closed[0].number, l.closed[0].bytes
	}
	if size == 0 {
		return time.Time{}, nil
	}
	f, err := l.s.fs.Open(l.file(number), false)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	line, err := lineAt(f, 0, size)
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, stringMember(line, "timestamp"))
	if err != nil {
		return time.Time{}, nil // an unreadable line says nothing: nothing is dropped for it
	}
	return at.Add(-commitSlack), nil
}

// drop removes the oldest closed segments while unwanted says so of the oldest one, given the bytes of all.
func (l *lineLog) drop(unwanted func(seg lineSegment, total int64) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := l.bytes
	for _, seg := range l.closed {
		total += seg.bytes
	}
	dropped := false
	for len(l.closed) > 0 && unwanted(l.closed[0], total) {
		seg := l.closed[0]
		for _, name := range []string{l.indexFile(seg.number), l.file(seg.number)} {
			if err := l.s.fs.Remove(name); err != nil && !notExist(err) {
				return err
			}
		}
		total -= seg.bytes
		l.closed = l.closed[1:]
		dropped = true
	}
	if !dropped {
		return nil
	}
	return l.s.fs.SyncDir(l.dir)
}

// erase replaces the lines which match by what change makes of them, with spaces up to the old length, so that
// offsets stay. A segment is replaced as a whole: a crash leaves it as it was or as it is to be.
func (l *lineLog) erase(match func(line []byte) bool, change func(line []byte) []byte, newerThan time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	segments := append(slices.Clone(l.closed), lineSegment{number: l.number, bytes: l.bytes})
	for _, seg := range segments {
		if seg.bytes == 0 || !seg.newest.IsZero() && seg.newest.Before(newerThan) {
			continue
		}
		if err := l.eraseIn(l.file(seg.number), seg.bytes, match, change); err != nil {
			return err
		}
	}
	return nil
}

func (l *lineLog) eraseIn(name string, size int64, match func([]byte) bool, change func([]byte) []byte) error {
	data, err := l.s.fs.ReadFile(name)
	if err != nil {
		return err
	}
	data = data[:min(size, int64(len(data)))]
	changed := false
	for rest := data; len(rest) > 0; {
		line, next, _ := bytes.Cut(rest, []byte("\n"))
		if match(line) {
			text := change(line)
			if len(text) > len(line) {
				text = []byte("{}")
			}
			n := copy(line, text)
			for i := n; i < len(line); i++ {
				line[i] = ' '
			}
			changed = true
		}
		rest = next
	}
	if !changed {
		return nil
	}
	return l.s.write(name, data)
}
