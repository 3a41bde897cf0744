package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// view is a session's history at one moment: the file up to bytes, followed by the pending lines.
type view struct {
	id      string
	size    int
	bytes   int64
	pending [][]byte
}

// written returns the seq of the last record in the file.
func (v view) written() int { return v.size - len(v.pending) }

// forward collects a page in ascending order.
func (v view) forward(ctx context.Context, fs vfs.FS, c *pager) error {
	written := v.written()
	if c.q.After < written && v.bytes > 0 {
		if full, err := v.fileForward(ctx, fs, c); full || err != nil {
			return err
		}
	}
	for _, line := range v.pending[min(max(c.q.After-written, 0), len(v.pending)):] {
		if c.add(line) {
			return nil
		}
	}
	return nil
}

// fileForward collects the part of the page that is in the file. The file is ordered by seq and, within commitSlack, by
// time.
func (v view) fileForward(ctx context.Context, fs vfs.FS, c *pager) (full bool, err error) {
	f, err := fs.Open(historyFile(v.id), false)
	if err != nil {
		return false, err
	}
	defer f.Close()
	off, err := findSeq(f, v.bytes, c.q.After+1)
	if err != nil {
		return false, err
	}
	if !c.q.Since.IsZero() {
		from, err := findTime(f, v.bytes, c.q.Since.Add(-commitSlack))
		if err != nil {
			return false, err
		}
		off = max(off, from)
	}
	return jsonl.Forward(ctx, f, off, v.bytes, func(line []byte) (bool, error) {
		if !c.q.Until.IsZero() && !timeOf(line).Before(c.q.Until.Add(commitSlack)) {
			return true, nil
		}
		return c.add(line), nil
	})
}

// backward collects a page in descending order.
func (v view) backward(ctx context.Context, fs vfs.FS, c *pager) error {
	to := v.size // seq of the newest record that is asked for
	if c.q.After > 0 {
		to = min(to, c.q.After-1)
	}
	for _, line := range slices.Backward(v.pending[:min(max(to-v.written(), 0), len(v.pending))]) {
		if c.add(line) {
			return nil
		}
	}
	if v.bytes == 0 || to < 1 {
		return nil
	}
	return v.fileBackward(ctx, fs, to, c)
}

// fileBackward collects the part of the page that is in the file, up to seq to.
func (v view) fileBackward(ctx context.Context, fs vfs.FS, to int, c *pager) error {
	f, err := fs.Open(historyFile(v.id), false)
	if err != nil {
		return err
	}
	defer f.Close()
	end := v.bytes
	if to < v.written() {
		if end, err = findSeq(f, v.bytes, to+1); err != nil {
			return err
		}
	}
	if !c.q.Until.IsZero() {
		behind, err := findTime(f, v.bytes, c.q.Until.Add(commitSlack))
		if err != nil {
			return err
		}
		end = min(end, behind)
	}
	_, err = jsonl.Backward(ctx, f, end, func(line []byte, _ int64) (bool, error) {
		if !c.q.Since.IsZero() && len(line) > 0 && timeOf(line).Before(c.q.Since.Add(-commitSlack)) {
			return true, nil
		}
		return c.add(line), nil
	})
	return err
}

// commitSlack is by how much a record's timestamp, the start of its call, may be older than that of an earlier record.
// No call lasts longer.
const commitSlack = 2 * time.Hour

// writtenTime returns a record's timestamp without decoding the record. ok is false if the timestamp is not in the
// place and format that the store writes.
func writtenTime(line []byte) (time.Time, bool) {
	const key = `"timestamp":"`
	head := line[:min(len(line), 256)]
	i := bytes.Index(head, []byte(key))
	if i < 0 || len(head) < i+len(key)+len(agent.TimeFormat)+1 || head[i+len(key)+len(agent.TimeFormat)] != '"' {
		return time.Time{}, false
	}
	at, err := time.Parse(agent.TimeFormat, string(head[i+len(key):i+len(key)+len(agent.TimeFormat)]))
	return at, err == nil
}

// timeOf returns a record's timestamp. If it cannot be read, timeOf returns a time in the far future, at which no
// search ends.
func timeOf(line []byte) time.Time {
	if at, ok := writtenTime(line); ok {
		return at
	}
	m := recordMeta{}
	if json.Unmarshal(line, &m) == nil {
		if at, err := time.Parse(time.RFC3339, m.Timestamp); err == nil {
			return at
		}
	}
	return time.Unix(1<<40, 0)
}

// findSeq returns the offset of the first line whose seq is at least seq, or size if there is none. It bisects.
func findSeq(f io.ReaderAt, size int64, seq int) (int64, error) {
	return jsonl.Bisect(f, size, func(line []byte) (reached, readable bool) {
		n := seqOf(line)
		return n >= seq, n > 0
	})
}

// findTime returns the offset of a line. Lines before it were committed before at plus commitSlack, and lines from it
// on were committed at or after at.
func findTime(f io.ReaderAt, size int64, at time.Time) (int64, error) {
	return jsonl.Bisect(f, size, func(line []byte) (reached, readable bool) {
		return !timeOf(line).Before(at), seqOf(line) > 0
	})
}
