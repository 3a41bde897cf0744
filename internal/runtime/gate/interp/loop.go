package interp

import "unsafe"

// mostInLoop is how many operations a block has at most that loop runs.
const mostInLoop = 6

// loop returns what runs a short block, and again while end says that the block follows itself. The machine's position is not set
// again: the block must not be marked.
func loop(block *codeBlock) ending {
	var o [mostInLoop]op
	copy(o[:], block.ops)
	a, b, c, end := o[0], o[1], o[2], block.end
	switch len(block.ops) {
	case 0:
		return func(m unsafe.Pointer) *codeBlock {
			for {
				if next := end(m); next != block {
					return next
				}
			}
		}
	case 1:
		return func(m unsafe.Pointer) *codeBlock {
			for {
				a(m)
				if next := end(m); next != block {
					return next
				}
			}
		}
	case 2:
		return func(m unsafe.Pointer) *codeBlock {
			for {
				a(m)
				b(m)
				if next := end(m); next != block {
					return next
				}
			}
		}
	case 3:
		return func(m unsafe.Pointer) *codeBlock {
			for {
				a(m)
				b(m)
				c(m)
				if next := end(m); next != block {
					return next
				}
			}
		}
	}
	return longerLoop(block, o)
}

func longerLoop(block *codeBlock, o [mostInLoop]op) ending {
	a, b, c, d, e, f, end := o[0], o[1], o[2], o[3], o[4], o[5], block.end
	switch len(block.ops) {
	case 4:
		return func(m unsafe.Pointer) *codeBlock {
			for {
				a(m)
				b(m)
				c(m)
				d(m)
				if next := end(m); next != block {
					return next
				}
			}
		}
	case 5:
		return func(m unsafe.Pointer) *codeBlock {
			for {
				a(m)
				b(m)
				c(m)
				d(m)
				e(m)
				if next := end(m); next != block {
					return next
				}
			}
		}
	}
	return func(m unsafe.Pointer) *codeBlock {
		for {
			a(m)
			b(m)
			c(m)
			d(m)
			e(m)
			f(m)
			if next := end(m); next != block {
				return next
			}
		}
	}
}
