package vfstest

import (
	"bytes"
	"slices"
)

// inode is a file. Its content is base, then own, then that many zeros: journals write many zeros ahead, and logs that
// were written as a whole grow at their ends.
type inode struct {
	id     int
	base   []byte // never changed in place, since operations and other inodes share it
	own    []byte
	frozen int // bytes of own that other inodes share, too
	zeros  int64
}

// written is the number of bytes before the zeros.
func (x *inode) written() int64 { return int64(len(x.base) + len(x.own)) }

func (x *inode) size() int64 { return x.written() + x.zeros }

// content returns a copy of the whole content.
func (x *inode) content() []byte {
	out := make([]byte, x.size())
	copy(out[copy(out, x.base):], x.own)
	return out
}

// read copies what the file has at an offset to p, and returns how much that is.
func (x *inode) read(p []byte, off int64) int {
	n := int(max(0, min(int64(len(p)), x.size()-off)))
	done := 0
	if off < int64(len(x.base)) {
		done = copy(p[:n], x.base[off:])
	}
	if from := off + int64(done-len(x.base)); from >= 0 && from < int64(len(x.own)) {
		done += copy(p[done:n], x.own[from:])
	}
	clear(p[done:n])
	return n
}

// copied returns another inode with the same content. Both share it until one of them changes.
func (x *inode) copied() *inode {
	x.frozen = len(x.own)
	other := *x
	other.own = slices.Clip(x.own)
	return &other
}

// write applies a write or a truncation.
func (x *inode) write(op Op) {
	size := x.size()
	if op.Kind == "truncate" {
		x.cut(op.Size)
		x.zeros = op.Size - x.written()
		return
	}
	end := op.Off + int64(len(op.Data))
	if op.Off == 0 && end >= size {
		*x = inode{id: x.id, base: op.Data}
		return
	}
	if n := x.written(); op.Off >= n && blank(op.Data) {
		x.zeros = max(size, end) - n
		return
	}
	if op.Off < int64(len(x.base)+x.frozen) {
		*x = inode{id: x.id, own: x.content()[:x.written()]}
	}
	start := op.Off - int64(len(x.base))
	if n := int64(len(x.own)); start > n {
		x.own = append(x.own, make([]byte, start-n)...)
	}
	n := copy(x.own[start:], op.Data)
	x.own = append(x.own, op.Data[n:]...)
	x.zeros = max(0, size-x.written())
}

// cut ends what is written at size, unless it is shorter.
func (x *inode) cut(size int64) {
	n := int64(len(x.base))
	x.base = x.base[:min(n, size)]
	if rest := max(0, size-n); rest < int64(len(x.own)) {
		x.own = x.own[:rest]
		if len(x.own) < x.frozen { // appending must not write over what others share
			x.own, x.frozen = slices.Clip(x.own), len(x.own)
		}
	}
}

// blank reports whether there are only zeros.
func blank(data []byte) bool {
	return len(data) > 0 && data[0] == 0 && bytes.Equal(data[1:], data[:len(data)-1])
}

// zeros is the data of all writes of zeros that are not longer.
var zeros [1 << 20]byte

// kept returns a copy of data that a recorded operation can keep.
func kept(data []byte) []byte {
	if len(data) <= len(zeros) && blank(data) {
		return zeros[:len(data):len(data)]
	}
	return bytes.Clone(data)
}
