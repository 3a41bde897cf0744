package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// The journal is a row of segments, journal/<first lsn>.wal. A segment is a row of frames; one frame is one batch of
// commits and reaches the disk with one fsync:
//
//	magic 4 bytes, length of the payload 4, CRC-32C of all that follows 4, number of entries 4, lsn of the first 8,
//	payload: for each entry its length as a uvarint and its bytes
//
// all little-endian. Entries are numbered 1, 2, 3 ... (lsn). A frame is the unit of tearing: a batch that a crash
// interrupted was not acknowledged and is dropped whole. As a frame is written only after the one before it is on
// disk, a bad frame with a good one behind it is damage, and a bad one at the end is a torn batch.
//
// A segment's first lsn voids what older segments hold from there on: that is how a batch whose fsync failed, and
// which was therefore refused, stays refused.
const (
	frameMagic  = 0x31464a52 // "RJF1"
	frameHeader = 24
	maxEntry    = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame collects the entries of one batch. Its buffer is used again.
type frame struct {
	buf   []byte
	count uint32
}

func (f *frame) reset() {
	f.buf = append(f.buf[:0], make([]byte, frameHeader)...)
	f.count = 0
}

// add appends an entry, given in pieces.
func (f *frame) add(pieces ...[]byte) {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	f.buf = binary.AppendUvarint(f.buf, uint64(n))
	for _, p := range pieces {
		f.buf = append(f.buf, p...)
	}
	f.count++
}

// seal returns the frame's bytes; they are valid until reset.
func (f *frame) seal(first uint64) []byte {
	b := f.buf
	binary.LittleEndian.PutUint32(b[0:], frameMagic)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-frameHeader))
	binary.LittleEndian.PutUint32(b[12:], f.count)
	binary.LittleEndian.PutUint64(b[16:], first)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b
}

// readFrame reads the frame at the start of data: its entries, their first lsn and the bytes it takes. ok is false
// when there is no whole, sound frame.
func readFrame(data []byte) (entries [][]byte, first uint64, size int, ok bool) {
	if len(data) < frameHeader || binary.LittleEndian.Uint32(data) != frameMagic {
		return nil, 0, 0, false
	}
	length := int64(binary.LittleEndian.Uint32(data[4:]))
	if length > int64(len(data)-frameHeader) {
		return nil, 0, 0, false
	}
	size = frameHeader + int(length)
	if crc32.Checksum(data[12:size], castagnoli) != binary.LittleEndian.Uint32(data[8:]) {
		return nil, 0, 0, false
	}
	count := binary.LittleEndian.Uint32(data[12:])
	first = binary.LittleEndian.Uint64(data[16:])
	payload := data[frameHeader:size]
	if int64(count) > length {
		return nil, 0, 0, false // an entry takes a byte at least
	}
	entries = make([][]byte, 0, count)
	for range count {
		n, w := binary.Uvarint(payload)
		if w <= 0 || n > uint64(len(payload)-w) {
			return nil, 0, 0, false
		}
		entries = append(entries, payload[w:w+int(n)])
		payload = payload[w+int(n):]
	}
	if len(payload) > 0 {
		return nil, 0, 0, false
	}
	return entries, first, size, true
}

// A gap is a row of entries that a damaged segment no longer gives.
type gap struct{ from, to uint64 } // to is the first lsn after it

// readSegment gives the entries of a segment to visit, in order, until limit (the first lsn of the next segment; 0:
// none). It returns the lsn after the last, where the good bytes end, and the gaps that it had to leap over.
func readSegment(data []byte, first, limit uint64, visit func(lsn uint64, entry []byte) error) (next uint64, end int, gaps []gap, err error) {
	next = first
	for off := 0; ; {
		entries, lsn, size, ok := readFrame(data[off:])
		if !ok || lsn < next {
			skip, found := nextFrame(data[off:], next)
			if !found {
				return next, end, gaps, nil
			}
			off += skip
			continue
		}
		if limit > 0 && lsn >= limit {
			return next, end, gaps, nil
		}
		if lsn > next {
			gaps = append(gaps, gap{next, lsn})
		}
		for i, e := range entries {
			at := lsn + uint64(i)
			if limit > 0 && at >= limit {
				return next, end, gaps, nil
			}
			if err := visit(at, e); err != nil {
				return next, end, gaps, err
			}
			next = at + 1
		}
		off += size
		end = off
	}
}

// nextFrame finds a sound frame with an lsn of at least next beyond the start of data.
func nextFrame(data []byte, next uint64) (off int, found bool) {
	magic := binary.LittleEndian.AppendUint32(nil, frameMagic)
	for off = 1; off < len(data); off++ {
		i := bytes.Index(data[off:], magic)
		if i < 0 {
			return 0, false
		}
		off += i
		if _, lsn, _, ok := readFrame(data[off:]); ok && lsn >= next {
			return off, true
		}
	}
	return 0, false
}

const journalDir = "journal"

func segmentName(first uint64) string { return fmt.Sprintf("%s/%020d.wal", journalDir, first) }

// segmentFirst reads the first lsn out of a segment's file name.
func segmentFirst(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".wal")
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// journal writes segments. It is guarded by the store's sequencer.
type journal struct {
	fs      FS
	size    int64     // of a segment
	active  *segment  // nil after a failure, until a new segment could be opened
	old     []segment // closed ones that still hold what the files may not, oldest first
	next    uint64    // lsn of the next entry
	written int64     // bytes of frames in old and active
}

type segment struct {
	file  File
	name  string
	first uint64
	off   int64
	room  int64
}

// newSegment makes the file of a segment, with room for its entries while the disk has it.
func (j *journal) newSegment(first uint64) (*segment, error) {
	name := segmentName(first)
	f, err := j.fs.Open(name, true)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		_ = f.Close()
		return nil, err
	}
	const least = 64 << 10
	room := j.size
	for {
		if err = f.Preallocate(room); err == nil || room <= least {
			break
		}
		room /= 4 // a small disk is no reason not to start
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.fs.SyncDir(journalDir)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &segment{file: f, name: name, first: first, room: room}, nil
}

// rotate starts a new segment, unless the active one is empty. When that fails the active one takes no more either,
// until rotate succeeds: the new one's file may be there, and would void what the old one held from here on.
func (j *journal) rotate() error {
	if j.active != nil && j.active.off == 0 && j.active.first == j.next {
		return nil
	}
	if j.active != nil {
		_ = j.active.file.Close() // all of it is on disk: each frame was synced
		j.old = append(j.old, *j.active)
		j.active = nil
	}
	s, err := j.newSegment(j.next)
	if err != nil {
		return err
	}
	j.active = s
	return nil
}

// write makes the frame durable. After an error nothing of it counts, and the journal takes no more until rotate has
// opened another segment, whose first lsn voids what may have reached the disk.
func (j *journal) write(f *frame) error {
	b := f.seal(j.next)
	if j.active == nil || j.active.off > 0 && j.active.off+int64(len(b)) > j.active.room {
		if err := j.rotate(); err != nil {
			return err
		}
	}
	a := j.active
	if err := a.append(b); err != nil {
		_ = a.file.Truncate(a.off) // an attempt: the next segment's name is what counts
		_ = a.file.Close()
		if a.off > 0 { // an empty one gives its name to the next
			j.old = append(j.old, *a)
		}
		j.active = nil
		return err
	}
	a.off += int64(len(b))
	j.written += int64(len(b))
	j.next += uint64(f.count)
	return nil
}

// append writes b durably at the segment's end. A panic counts as a failed write: what reached the disk is unknown.
func (a *segment) append(b []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("writing the journal panicked: %v", v)
		}
	}()
	if _, err := a.file.WriteAt(b, a.off); err != nil {
		return err
	}
	return a.file.Sync()
}

// cut lets the segments go which hold only entries up to lsn; the caller removes their files.
func (j *journal) cut(lsn uint64) (gone []segment) {
	for len(j.old) > 0 {
		next := j.next
		if len(j.old) > 1 {
			next = j.old[1].first
		} else if j.active != nil {
			next = j.active.first
		}
		if next > lsn+1 {
			break
		}
		gone = append(gone, j.old[0])
		j.written -= j.old[0].off
		j.old = j.old[1:]
	}
	return gone
}
