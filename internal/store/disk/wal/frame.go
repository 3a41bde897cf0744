package wal

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	frameMagic  = 0x31464a52 // "RJF1"
	frameHeader = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch collects entries that are written together. Its buffer is reused; Reset comes first.
type Batch struct {
	buf   []byte
	count uint32
}

// Reset empties the batch.
func (b *Batch) Reset() {
	b.buf = append(b.buf[:0], make([]byte, frameHeader)...)
	b.count = 0
}

// Size is the number of bytes that the batch takes in the log.
func (b *Batch) Size() int { return len(b.buf) }

// Add appends an entry, given in pieces.
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

// seal returns the frame's bytes, which are valid until Reset.
func (b *Batch) seal(first uint64) []byte {
	out := b.buf
	binary.LittleEndian.PutUint32(out[0:], frameMagic)
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-frameHeader))
	binary.LittleEndian.PutUint32(out[12:], b.count)
	binary.LittleEndian.PutUint64(out[16:], first)
	binary.LittleEndian.PutUint32(out[8:], crc32.Checksum(out[12:], castagnoli))
	return out
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
