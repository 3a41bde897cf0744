package wal

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	frameMagic = 0x31464a52 // "RJF1"
	// bytes before the payload: magic, length, checksum, number of entries, number of the first entry
	frameHeader = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch collects entries that are written together. Reset must be called before the first Add; it keeps the buffer. A
// Batch must not be used concurrently.
type Batch struct {
	buf   []byte
	count uint32
}

// Reset empties the batch.
func (b *Batch) Reset() {
	b.buf = append(b.buf[:0], make([]byte, frameHeader)...)
	b.count = 0
}

// Size returns the number of bytes that the batch takes in the log.
func (b *Batch) Size() int { return len(b.buf) }

// Add appends one entry, the concatenation of the pieces.
func (b *Batch) Add(pieces ...[]byte) {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	b.buf = binary.AppendUvarint(b.buf, uint64(n))
	for _, p := range pieces {
		b.buf = append(b.buf, p...)
	}
	b.count++
}

// seal completes the header and returns the bytes of the frame, which are valid until Reset. The first entry gets the
// number first.
func (b *Batch) seal(first uint64) []byte {
	out := b.buf
	binary.LittleEndian.PutUint32(out[0:], frameMagic)
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-frameHeader))
	binary.LittleEndian.PutUint32(out[12:], b.count)
	binary.LittleEndian.PutUint64(out[16:], first)
	binary.LittleEndian.PutUint32(out[8:], crc32.Checksum(out[12:], castagnoli))
	return out
}

// entries holds the entries of a valid frame, each preceded by its length.
type entries []byte

// all yields the entries with their indexes in the frame.
func (e entries) all(yield func(i uint64, entry []byte) bool) {
	for i := uint64(0); len(e) > 0; i++ {
		n, w := binary.Uvarint(e)
		if !yield(i, e[w:w+int(n)]) {
			return
		}
		e = e[w+int(n):]
	}
}

// frameSize returns the size of the frame at the start of data, or 0 if there is no frame or only part of one. It does
// not verify the checksum.
func frameSize(data []byte) int {
	if len(data) < frameHeader || binary.LittleEndian.Uint32(data) != frameMagic {
		return 0
	}
	length := int64(binary.LittleEndian.Uint32(data[4:]))
	if length > int64(len(data)-frameHeader) {
		return 0
	}
	return frameHeader + int(length)
}

// readFrame decodes the frame at the start of data and returns its entries, their first lsn and the frame's size. ok is
// false if there is no complete and valid frame. It does not allocate, because a damaged frame may claim as many
// entries as bytes.
func readFrame(data []byte) (e entries, first uint64, size int, ok bool) {
	size = frameSize(data)
	if size == 0 || crc32.Checksum(data[12:size], castagnoli) != binary.LittleEndian.Uint32(data[8:]) {
		return nil, 0, 0, false
	}
	count := uint64(binary.LittleEndian.Uint32(data[12:]))
	first = binary.LittleEndian.Uint64(data[16:])
	e = data[frameHeader:size]
	found, rest := uint64(0), e
	for ; len(rest) > 0; found++ {
		n, w := binary.Uvarint(rest)
		if w <= 0 || n > uint64(len(rest)-w) {
			return nil, 0, 0, false
		}
		rest = rest[w+int(n):]
	}
	return e, first, size, found == count
}
