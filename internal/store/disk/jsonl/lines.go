package jsonl

import (
	"bytes"
	"context"
	"io"
)

// Bisect returns the offset of the first line for which at reports reached, or size if there is none. The lines must be
// ordered: once one is reached, all later ones are. If their order has faults, Bisect returns the offset of some line
// that is reached while the one before it is not. A line that is not readable is judged by the next readable one.
func Bisect(f io.ReaderAt, size int64, at func(line []byte) (reached, readable bool)) (int64, error) {
	lo, hi := int64(0), size // the result is in [lo, hi]
	for lo < hi {
		mid := lo + (hi-lo)/2
		start, line, err := lineAfter(f, mid, hi, size)
		if err != nil {
			return 0, err
		}
		// No line starts in (mid, hi), which leaves the one at lo.
		if line == nil || start >= hi {
			line, err := LineAt(f, lo, size)
			if err != nil {
				return 0, err
			}
			if reached, _ := at(line); reached {
				return lo, nil
			}
			next := lo + int64(len(line)) + 1
			if next >= hi {
				return hi, nil
			}
			lo = next
			continue
		}
		reached, readable := at(line)
		end := start + int64(len(line)) + 1
		for !readable && end < hi {
			if line, err = LineAt(f, end, size); err != nil {
				return 0, err
			}
			reached, readable = at(line)
			end += int64(len(line)) + 1
		}
		if reached || !readable {
			if mid == lo && start == lo {
				return lo, nil
			}
			hi = start
		} else {
			lo = end
		}
	}
	return lo, nil
}

// lineAfter returns the first line that starts after off, or at off if that is 0. The line is nil if none starts before
// limit.
func lineAfter(f io.ReaderAt, off, limit, size int64) (start int64, line []byte, err error) {
	if off > 0 {
		buf := make([]byte, 4096)
		for {
			n, err := f.ReadAt(buf[:min(int64(len(buf)), size-off)], off)
			if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
				off += int64(i) + 1
				break
			}
			if off += int64(n); off >= limit || n == 0 {
				if err != nil && err != io.EOF {
					return 0, nil, err
				}
				return 0, nil, nil
			}
		}
	}
	if off >= limit {
		return 0, nil, nil
	}
	line, err = LineAt(f, off, size)
	return off, line, err
}

// LineAt returns the line that starts at off, without its newline. A file of that size may end without one.
func LineAt(f io.ReaderAt, off, size int64) ([]byte, error) {
	line := []byte{}
	chunk := int64(2048)
	for off < size {
		buf := make([]byte, min(chunk, size-off))
		n, err := f.ReadAt(buf, off)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return append(line, buf[:i]...), nil
		}
		line = append(line, buf[:n]...)
		off += int64(n)
		chunk *= 2
		if err != nil && err != io.EOF {
			return nil, err
		}
		if n == 0 {
			break
		}
	}
	return line, nil
}

// Forward calls visit with the complete lines in [off, end) until visit returns true. A line is valid until visit
// returns.
func Forward(ctx context.Context, f io.ReaderAt, off, end int64,
	visit func(line []byte) (bool, error)) (done bool, err error) {
	const chunk = 64 << 10
	rest := []byte{}
	buf := make([]byte, chunk)
	for off < end {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := f.ReadAt(buf[:min(chunk, end-off)], off)
		if n == 0 {
			if err == io.EOF {
				return false, nil
			}
			return false, err
		}
		off += int64(n)
		rest = append(rest, buf[:n]...)
		used := 0
		for {
			i := bytes.IndexByte(rest[used:], '\n')
			if i < 0 {
				break
			}
			if done, err := visit(rest[used : used+i]); done || err != nil {
				return done, err
			}
			used += i + 1
		}
		rest = append(rest[:0], rest[used:]...)
	}
	return false, nil
}

// Backward calls visit with the lines that end before end, the last first, and their offsets, until visit returns true.
func Backward(ctx context.Context, f io.ReaderAt, end int64,
	visit func(line []byte, off int64) (bool, error)) (done bool, err error) {
	chunk := int64(32 << 10)
	var tail []byte // the bytes from off on that belong to a line whose start has not been read yet
	off := end
	for off > 0 {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n := min(chunk, off)
		buf := make([]byte, n, int(n)+len(tail))
		if _, err := f.ReadAt(buf, off-n); err != nil && err != io.EOF {
			return false, err
		}
		off -= n
		tail = append(buf, tail...)
		if !bytes.Contains(buf, []byte("\n")) {
			chunk *= 2 // avoids copying a long line again for each part of it
		}
		for {
			body := bytes.TrimSuffix(tail, []byte("\n"))
			i := bytes.LastIndexByte(body, '\n')
			if i < 0 {
				break
			}
			if done, err := visit(body[i+1:], off+int64(i)+1); done || err != nil {
				return done, err
			}
			tail = tail[:i+1]
		}
	}
	if len(tail) > 0 {
		return visit(bytes.TrimSuffix(tail, []byte("\n")), 0)
	}
	return false, nil
}
