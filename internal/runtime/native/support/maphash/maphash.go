// Package maphash is linked into executables in the place of hash/maphash, whose hashes differ from process to process. Here a hash follows from its seed and from what is hashed, and a seed
// is a random number of the run, so that a replay computes the same. It has all that hash/maphash has, and the same meaning.
//
// Hashes are FNV-1a of 64 bits (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv) over the seed and the bytes. They are not fit to keep out those who choose what is hashed.
package maphash

import (
	"encoding/binary"
	"hash"

	"github.com/recurgentd/recurgentd/internal/runtime/native/support"
)

const (
	offset = 14695981039346656037
	prime  = 1099511628211
)

// A Seed selects one of the hash functions. The zero value is none of them: only MakeSeed makes one.
type Seed struct{ s uint64 }

// MakeSeed draws a seed.
func MakeSeed() Seed { return Seed{support.RandV2.Uint64() | 1} }

// A Hash computes the hash of what is written to it. The zero value is ready: it draws its seed when it first needs one. It is not safe for concurrent use.
type Hash struct {
	_     [0]func() // not comparable
	seed  Seed
	state uint64
}

func (h *Hash) ready() {
	if h.seed.s == 0 {
		h.SetSeed(MakeSeed())
	}
}

// SetSeed sets the seed, and forgets what was written.
func (h *Hash) SetSeed(seed Seed) {
	if seed.s == 0 {
		panic("maphash: use of uninitialized Seed")
	}
	h.seed = seed
	h.Reset()
}

// Seed returns the seed.
func (h *Hash) Seed() Seed {
	h.ready()
	return h.seed
}

// Reset forgets what was written.
func (h *Hash) Reset() {
	h.ready()
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], h.seed.s)
	h.state = offset
	h.add(string(seed[:]))
}

func (h *Hash) add(s string) {
	for i := range len(s) {
		h.state = (h.state ^ uint64(s[i])) * prime
	}
}

// Write adds bytes. It never fails.
func (h *Hash) Write(b []byte) (int, error) { return h.WriteString(string(b)) }

// WriteString adds the bytes of a text. It never fails.
func (h *Hash) WriteString(s string) (int, error) {
	h.ready()
	h.add(s)
	return len(s), nil
}

// WriteByte adds a byte. It never fails.
func (h *Hash) WriteByte(b byte) error {
	_, err := h.Write([]byte{b})
	return err
}

// Sum64 returns the hash of what was written.
func (h *Hash) Sum64() uint64 {
	h.ready()
	x := h.state // FNV leaves the last bytes in the lower bits
	x = (x ^ x>>32) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// Sum appends the hash to b, its highest byte first.
func (h *Hash) Sum(b []byte) []byte { return binary.BigEndian.AppendUint64(b, h.Sum64()) }

// Size is the length of a hash in bytes.
func (h *Hash) Size() int { return 8 }

// BlockSize is that of hash/maphash: writes of other lengths are no slower.
func (h *Hash) BlockSize() int { return 128 }

// Clone returns a copy, which goes on by itself.
func (h *Hash) Clone() (hash.Cloner, error) {
	h.ready()
	c := *h
	return &c, nil
}

// Bytes returns the hash of the bytes.
func Bytes(seed Seed, b []byte) uint64 { return String(seed, string(b)) }

// String returns the hash of a text's bytes.
func String(seed Seed, s string) uint64 {
	var h Hash
	h.SetSeed(seed)
	h.add(s)
	return h.Sum64()
}
