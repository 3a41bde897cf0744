// Package small is what the tests of this command change.
package small

// Seven is noticed by a test of its own, by a limit where the loop has no end.
func Seven() int {
	n := 0
	for n != 7 {
		n++
	}
	return n
}

// Small is run by a test that does not look at the boundary.
func Small(n int) bool { return n < 10 }

// Never is run by no test.
func Never(n int) int { return -n }
