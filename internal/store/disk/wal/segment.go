package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Segment is one file of a log.
type Segment struct {
	Name  string // of the file, including its directory
	First uint64 // lsn of its first entry
	Limit uint64 // lsn of the next segment's first entry; 0 for the last segment
}

// Gap is a range of entries that a damaged segment no longer holds.
type Gap struct{ From, To uint64 } // To is the first lsn after the range

// IsSegment reports whether the name of a file in a log's directory is that of a segment.
func IsSegment(name string) bool {
	_, ok := firstOf(name)
	return ok
}

func segmentName(dir string, first uint64) string {
	return path.Join(dir, fmt.Sprintf("%020d.wal", first))
}

// firstOf returns the first lsn from a segment's file name.
func firstOf(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".wal")
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// Segments returns the segments in a directory, oldest first.
func Segments(fs vfs.FS, dir string) ([]Segment, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	out := []Segment{}
	for _, name := range names {
		first, ok := firstOf(name)
		if !ok {
			continue
		}
		if len(out) > 0 {
			out[len(out)-1].Limit = first
		}
		out = append(out, Segment{Name: path.Join(dir, name), First: first})
	}
	return out, nil
}

// Read calls visit with each entry of the segment, in order. It returns the lsn after the last entry, or Limit if that
// is higher, and the gaps: ranges of damaged or missing entries before that lsn. It stops at an error of visit and
// returns it.
func (s Segment) Read(fs vfs.FS, visit func(lsn uint64, entry []byte) error) (next uint64, gaps []Gap, err error) {
	data, err := fs.ReadFile(s.Name)
	if err != nil {
		return 0, nil, err
	}
	return s.Visit(data, visit)
}

// Rewrite applies change to each sound entry of a segment's data and returns the new data. Entries keep their numbers.
func (s Segment) Rewrite(data []byte, change func(entry []byte) []byte) (out []byte, err error) {
	var b Batch
	_, _, err = s.Visit(data, func(lsn uint64, entry []byte) error {
		b.Reset()
		b.Add(change(entry))
		out = append(out, b.seal(lsn)...)
		return nil
	})
	return out, err
}

// Visit is Read for data that was already read from the segment's file.
func (s Segment) Visit(data []byte, visit func(lsn uint64, entry []byte) error) (next uint64, gaps []Gap, err error) {
	next, gaps, err = read(data, s.First, s.Limit, visit)
	if err == nil && next < s.Limit {
		gaps = append(gaps, Gap{next, s.Limit})
		next = s.Limit
	}
	return next, gaps, err
}

// read calls visit with the entries in a segment's data, in order, up to but not including limit; a limit of 0 means
// none. It returns the lsn after the last of them and the gaps before it.
func read(data []byte, first, limit uint64, visit func(lsn uint64,
	entry []byte) error) (next uint64, gaps []Gap, err error) {
	next = first
	search := finder{work: 1<<20 + 16*int64(len(data))}
	for off := 0; ; {
		frame, lsn, size, ok := readFrame(data[off:])
		if !ok || lsn < next {
			skip, found := search.next(data[off:], next)
			if !found {
				return next, gaps, nil
			}
			off += skip
			continue
		}
		if limit > 0 && lsn >= limit {
			return next, gaps, nil
		}
		if lsn > next {
			gaps = append(gaps, Gap{next, lsn})
		}
		for i, e := range frame.all {
			if limit > 0 && lsn+i >= limit {
				return next, gaps, nil
			}
			if err := visit(lsn+i, e); err != nil {
				return next, gaps, err
			}
			next = lsn + i + 1
		}
		off += size
	}
}

// A finder finds sound frames after damage. Each candidate costs a checksum, and crafted bytes can look like a long
// frame at every offset. work bounds the bytes that are summed; beyond it, no further frame is found.
type finder struct{ work int64 }

// next finds a sound frame after the start of data whose lsn is at least next, and returns its offset.
func (f *finder) next(data []byte, next uint64) (off int, found bool) {
	magic := binary.LittleEndian.AppendUint32(nil, frameMagic)
	for off = 1; off < len(data); off++ {
		i := bytes.Index(data[off:], magic)
		if i < 0 {
			return 0, false
		}
		off += i
		if f.work -= int64(frameSize(data[off:])); f.work < 0 {
			return 0, false
		}
		if _, lsn, _, ok := readFrame(data[off:]); ok && lsn >= next {
			return off, true
		}
	}
	return 0, false
}
