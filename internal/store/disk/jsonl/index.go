package jsonl

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"io"
	"slices"
	"sort"
)

// Key returns a hash of the parts of a key. Different keys may have the same hash.
func Key(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // a hash never returns an error
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// indexMagic starts an index file. Pairs of a key and an offset follow, 16 bytes each, little-endian and sorted.
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
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.off, b.off)) })
	out := []byte(indexMagic)
	for _, p := range pairs {
		out = binary.LittleEndian.AppendUint64(out, p.key)
		out = binary.LittleEndian.AppendUint64(out, uint64(p.off))
	}
	return out
}

// searchIndex returns the offsets of a key in an index file of that size. ok is false if the file is not a valid index.
func searchIndex(f io.ReaderAt, size int64, key uint64) (offsets []int64, ok bool) {
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
	damaged := false
	lo := sort.Search(n, func(i int) bool {
		k, _, ok := read(i)
		damaged = damaged || !ok
		return k >= key
	})
	if damaged {
		return nil, false
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
