package mask

// An automaton finds many needles in a text at once, by the algorithm of Aho and Corasick, Efficient string matching:
// an aid to bibliographic search, 1975. It takes at most two steps per character on average over the text, whatever the
// text and the needles are. It is immutable after newAutomaton and may be used concurrently.
type automaton struct {
	nodes   []node // the first is the root
	first   [256]int32
	needles []needle
	longest int
}

// A node stands for a prefix of needles. Fields are indexes of nodes. 0 means none, because no edge leads to the root.
type node struct {
	child, sibling int32 // its first child, and the next child of its parent
	shorter        int32 // the node for the longest proper suffix of this prefix that is itself a prefix
	needle         int32 // the longest needle that ends here, counted from 1; 0 means none
	c              byte  // the last character
}

// A needle is a text to find.
type needle struct {
	text string
	// before and after mean that the adjacent character also encodes a part of the secret, as in base64.
	before, after bool
}

// newAutomaton returns the automaton that finds the needles.
func newAutomaton(needles []needle) *automaton {
	a := &automaton{nodes: make([]node, 1), needles: needles}
	for i, n := range needles {
		a.longest = max(a.longest, len(n.text))
		at := int32(0)
		for k := range len(n.text) {
			at = a.grow(at, n.text[k])
		}
		a.nodes[at].needle = int32(i + 1)
	}
	a.link()
	return a
}

// grow returns the child by c, and creates it if there is none.
func (a *automaton) grow(at int32, c byte) int32 {
	if next := a.child(at, c); next != 0 {
		return next
	}
	next := int32(len(a.nodes))
	a.nodes = append(a.nodes, node{c: c, sibling: a.nodes[at].child})
	a.nodes[at].child = next
	if at == 0 {
		a.first[c] = next
	}
	return next
}

// link sets each node's shorter node, breadth first from the root.
func (a *automaton) link() {
	queue := make([]int32, 1, len(a.nodes))
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for n := a.nodes[at].child; n != 0; n = a.nodes[n].sibling {
			if at != 0 {
				a.nodes[n].shorter, _ = a.step(a.nodes[at].shorter, a.nodes[n].c)
			}
			// A needle may be a proper suffix of a longer prefix, and then ends there too.
			if a.nodes[n].needle == 0 {
				a.nodes[n].needle = a.nodes[a.nodes[n].shorter].needle
			}
			queue = append(queue, n)
		}
	}
}

// child returns the child of at by c, or 0.
func (a *automaton) child(at int32, c byte) int32 {
	if at == 0 {
		return a.first[c]
	}
	n := a.nodes[at].child
	for n != 0 && a.nodes[n].c != c {
		n = a.nodes[n].sibling
	}
	return n
}

// step returns the node reached by c and the number of nodes visited.
func (a *automaton) step(at int32, c byte) (next int32, steps int) {
	for {
		steps++
		if next = a.child(at, c); next != 0 || at == 0 {
			return next, steps
		}
		at = a.nodes[at].shorter
	}
}
