package disk

import (
	"bytes"
	"slices"
	"time"
)

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
