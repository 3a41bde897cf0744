package vfstest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// A file has the bytes that were written to it, whether they are zeros or not, and changes no copy of its own.
func TestInode(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 1))
	for range 500 {
		x, want := &inode{}, []byte{}
		var copies []*inode
		var wants [][]byte
		for range 12 {
			op := Op{Kind: "write", Off: random.Int64N(20), Data: make([]byte, 1+random.IntN(8))}
			if random.IntN(2) == 0 {
				for i := range op.Data {
					op.Data[i] = byte(random.IntN(3))
				}
			}
			if random.IntN(4) == 0 {
				op = Op{Kind: "truncate", Size: random.Int64N(20)}
			}
			end := max(int(op.Off)+len(op.Data), int(op.Size))
			if op.Kind == "truncate" {
				want = want[:min(len(want), end)]
			}
			want = append(want, make([]byte, max(0, end-len(want)))...)
			copy(want[op.Off:], op.Data)
			x.write(op)
			if random.IntN(4) == 0 {
				copies, wants = append(copies, x.copied()), append(wants, slices.Clone(want))
			}
			f := &simFile{New(), x}
			part, from := make([]byte, 5), random.Int64N(20)
			n, _ := f.ReadAt(part, from) // it ends early at the end
			rest := want[min(int(from), len(want)):]
			if got := x.content(); !bytes.Equal(got, want) || x.size() != int64(len(want)) ||
				!bytes.Equal(rest[:min(len(part), len(rest))], part[:n]) {
				t.Fatalf("after %+v: got %v, and %v at %d, want %v", op, got, part[:n], from, want)
			}
		}
		for i := range copies {
			if got := copies[i].content(); !bytes.Equal(got, wants[i]) {
				t.Fatalf("a copy changed: got %v, want %v", got, wants[i])
			}
		}
	}
}
