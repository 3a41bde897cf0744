package jsonl

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Oldest returns the first line of the log, or nil if the log is empty.
func (l *Log) Oldest() ([]byte, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	number, size := l.number, l.bytes
	if len(l.closed) > 0 {
		number, size = l.closed[0].number, l.closed[0].bytes
	}
	if size == 0 {
		return nil, nil
	}
	f, err := l.o.Files.Open(l.file(number), false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return LineAt(f, 0, size)
}

// Drop removes the oldest closed segments for as long as unwanted returns true; total is the size of all segments in
// bytes. If gone is not nil, it is called with each line of a segment before the segment is removed.
func (l *Log) Drop(unwanted func(seg Segment, total int64) bool, gone func(line []byte)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := l.bytes
	for _, seg := range l.closed {
		total += seg.bytes
	}
	dropped := false
	for len(l.closed) > 0 && unwanted(l.closed[0], total) {
		seg := l.closed[0]
		if err := l.visit(seg, gone); err != nil {
			return err
		}
		for _, name := range []string{l.indexFile(seg.number), l.file(seg.number)} {
			if err := l.o.Files.Remove(name); err != nil && !vfs.NotExist(err) {
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
	return l.o.Files.SyncDir(l.o.Dir)
}

// visit calls line with each line of a segment, unless line is nil. A missing file counts as empty.
func (l *Log) visit(seg Segment, line func([]byte)) error {
	if line == nil {
		return nil
	}
	data, err := l.o.Files.ReadFile(l.file(seg.number))
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	for part := range bytes.Lines(data) {
		line(bytes.TrimSuffix(part, []byte("\n")))
	}
	return nil
}

// Erase replaces each line for which match returns true by the result of change, padded with spaces to the old length
// to keep offsets valid. If the result is longer than the line, {} replaces the line. Segments whose last line is older
// than newerThan are skipped. Each segment is replaced atomically, but not all of them together.
func (l *Log) Erase(match func(line []byte) bool, change func(line []byte) []byte, newerThan time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	segments := append(slices.Clone(l.closed), Segment{number: l.number, bytes: l.bytes})
	for _, seg := range segments {
		if seg.bytes == 0 || !seg.Newest.IsZero() && seg.Newest.Before(newerThan) {
			continue
		}
		if err := l.eraseIn(l.file(seg.number), seg.bytes, match, change); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) eraseIn(name string, size int64, match func([]byte) bool, change func([]byte) []byte) error {
	data, err := l.o.Files.ReadFile(name)
	if err != nil {
		return err
	}
	data = data[:min(size, int64(len(data)))]
	if !replaceLines(data, match, change) {
		return nil
	}
	return l.o.Files.Replace(name, data)
}

// replaceLines replaces the matching lines in place, as Erase does, and reports whether there were any.
func replaceLines(data []byte, match func([]byte) bool, change func([]byte) []byte) (changed bool) {
	for rest := data; len(rest) > 0; {
		line, next, _ := bytes.Cut(rest, []byte("\n"))
		rest = next
		if !match(line) {
			continue
		}
		text := change(line)
		if len(text) > len(line) {
			text = []byte("{}")
		}
		for i := copy(line, text); i < len(line); i++ {
			line[i] = ' '
		}
		changed = true
	}
	return changed
}

// Repair replaces lines that are not valid JSON by {} in all segments. It calls moveAside with the name of a damaged
// file before replacing it. It also drops the indexes, which are rebuilt when needed.
func (l *Log) Repair(moveAside func(file string) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offsets = nil
	numbers := []int{l.number}
	for _, seg := range l.closed {
		numbers = append(numbers, seg.number)
	}
	for _, n := range numbers {
		if err := l.repairSegment(n, moveAside); err != nil {
			return err
		}
	}
	return nil
}

// repairSegment repairs one segment. A missing one is ignored.
func (l *Log) repairSegment(number int, moveAside func(file string) error) error {
	name := l.file(number)
	data, err := l.o.Files.ReadFile(name)
	if vfs.NotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.o.Files.Remove(l.indexFile(number)); err != nil && !vfs.NotExist(err) {
		return err
	}
	damaged := func(line []byte) bool { return len(line) > 0 && !json.Valid(line) }
	if !replaceLines(data, damaged, func([]byte) []byte { return []byte("{}") }) {
		return nil
	}
	if err := moveAside(name); err != nil {
		return err
	}
	return l.o.Files.Replace(name, data)
}
