package jsonl

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Open finds the segments and rolls the log back to the place up to which it is known to be complete; what follows was
// not synced and is dropped. If at is nil, the place is unknown and Open drops only a torn last line. If at.Segment is
// 0, Open drops nothing.
func (l *Log) Open(at *Place) error {
	numbers, err := l.segments()
	if err != nil {
		return err
	}
	l.number = 1
	if n := len(numbers); n > 0 {
		l.number = numbers[n-1]
		if l.o.Current != "" {
			l.number++
		}
	}
	if at != nil && at.Segment > 0 {
		if err := l.rollBack(numbers, at); err != nil {
			return err
		}
	}
	if err := l.openClosed(numbers); err != nil {
		return err
	}
	info, err := l.o.Files.Stat(l.file(l.number))
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	l.bytes = info.Size
	switch {
	case at == nil:
		return l.trim()
	case at.Segment == 0:
		return nil
	case l.bytes < at.Bytes && l.o.Lost != nil:
		l.o.Lost(l.file(l.number), at.Bytes-l.bytes)
	}
	l.bytes, err = EndLine(l.o.Files, l.file(l.number), l.bytes)
	return err
}

// segments returns the numbers of the segments in Dir, sorted.
func (l *Log) segments() ([]int, error) {
	names, err := l.o.Files.List(l.o.Dir)
	if err != nil && !vfs.NotExist(err) {
		return nil, err
	}
	var numbers []int
	for _, name := range names {
		var n int
		if _, err := fmt.Sscanf(name, "%08d.jsonl", &n); err == nil && name == path.Base(l.closedFile(n)) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// openClosed records the segments before the current one.
func (l *Log) openClosed(numbers []int) error {
	l.closed = nil
	for _, n := range numbers {
		if n >= l.number {
			break
		}
		info, err := l.o.Files.Stat(l.file(n))
		if err != nil {
			return err
		}
		newest, err := l.newest(l.file(n), info)
		if err != nil {
			return err
		}
		l.closed = append(l.closed, Segment{number: n, bytes: info.Size, Newest: newest})
	}
	return nil
}

// newest returns a time after which nothing was appended to a segment. It takes the time from the last line, or from
// the file if the line has none.
func (l *Log) newest(name string, info vfs.Info) (time.Time, error) {
	f, err := l.o.Files.Open(name, false)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	at := info.ModTime
	_, err = Backward(context.Background(), f, info.Size, func(line []byte, _ int64) (bool, error) {
		if t, ok := l.o.Time(line); ok {
			at = t
		}
		return true, nil
	})
	return at, err
}

// rollBack undoes all appends and rotations after the place.
func (l *Log) rollBack(numbers []int, at *Place) error {
	for _, n := range numbers {
		if n > at.Segment {
			if err := l.o.Files.Remove(l.closedFile(n)); err != nil {
				return err
			}
		}
		if n >= at.Segment {
			if err := l.o.Files.Remove(l.indexFile(n)); err != nil && !vfs.NotExist(err) {
				return err
			}
		}
	}
	l.number = at.Segment
	if l.o.Current != "" && slices.Contains(numbers, at.Segment) {
		if err := l.o.Files.Rename(l.closedFile(at.Segment), l.o.Current); err != nil {
			return err
		}
	}
	return Cut(l.o.Files, l.file(l.number), at.Bytes)
}

// trim cuts off a torn last line.
func (l *Log) trim() error {
	if l.bytes == 0 {
		return nil
	}
	data, err := l.o.Files.ReadFile(l.file(l.number))
	if err != nil {
		return err
	}
	if i := bytes.LastIndexByte(data, '\n'); i+1 < len(data) {
		l.bytes = int64(i + 1)
		return Cut(l.o.Files, l.file(l.number), l.bytes)
	}
	return nil
}
