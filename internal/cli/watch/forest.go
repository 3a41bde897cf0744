package watch

import (
	"slices"
	"strings"
)

// maxWatched is the number of calls that a screen keeps. The oldest trees are dropped first.
const maxWatched = 2000

// A branch is a call with its nested calls. Until its own entry arrives, it is known only from its children.
type branch struct {
	call     Call
	seen     bool
	children []*branch // sorted by start
}

// A forest holds the calls of a screen as trees. Children are committed before their parents, so a parent counts as
// running until its own entry arrives.
type forest struct {
	byID  map[string]*branch
	roots []*branch // sorted by start
}

func newForest() *forest { return &forest{byID: map[string]*branch{}} }

// add adds an ended or running call. A running entry does not replace an ended one.
func (f *forest) add(w Call) {
	b := f.byID[w.ID]
	if b != nil && b.seen && b.call.Status != Running && b.call.Status != Gone && w.Status == Running {
		return
	}
	if b == nil {
		b = &branch{call: w}
		f.byID[w.ID] = b
		f.attach(b, w.Parent)
	} else if !b.seen && w.Parent != "" {
		f.roots = slices.DeleteFunc(f.roots, func(x *branch) bool { return x == b })
		f.attach(b, w.Parent)
	}
	b.call, b.seen = w, true
	f.trim()
}

// mark sets the verdict of a call; "" removes it.
func (f *forest) mark(id, verdict string) {
	if b := f.byID[id]; b != nil {
		b.call.Verdict = verdict
	}
}

// attach makes b a child of parent, or a root if there is no parent. An unknown parent gets a placeholder.
func (f *forest) attach(b *branch, parent string) {
	if parent == "" || f.leadsTo(parent, b.call.ID) {
		f.roots = inOrder(f.roots, b)
		return
	}
	p := f.byID[parent]
	if p == nil {
		p = &branch{call: Call{ID: parent, Status: Running, Time: "--:--:--", Text: "…"}}
		f.byID[parent] = p
		f.roots = inOrder(f.roots, p)
	}
	p.children = inOrder(p.children, b)
}

// inOrder inserts b in order of start. Ids sort by time.
func inOrder(list []*branch, b *branch) []*branch {
	i, _ := slices.BinarySearchFunc(list, b.call.ID, func(x *branch,
		id string) int {
		return strings.Compare(x.call.ID, id)
	})
	return slices.Insert(list, i, b)
}

// leadsTo reports whether the call or one of its ancestors has that id. It bounds the search, because a faulty daemon
// could report cycles.
func (f *forest) leadsTo(from, id string) bool {
	for range maxWatched {
		if from == id {
			return true
		}
		b := f.byID[from]
		if b == nil {
			return false
		}
		from = b.call.Parent
	}
	return true
}

// running replaces the set of running calls. Calls that are no longer running have ended or were lost with their
// daemon. Those without children are removed until their end is reported.
func (f *forest) running(now []Call) {
	alive := map[string]bool{}
	for _, w := range now {
		alive[w.ID] = true
	}
	for id, b := range f.byID {
		switch {
		case b.call.Status != Running || alive[id]:
		case len(b.children) == 0:
			f.forget(b)
		default:
			b.call.Status = Gone // until its end is reported, if ever
		}
	}
	for _, w := range now {
		f.add(w)
	}
}

// forget removes a branch without children.
func (f *forest) forget(b *branch) {
	delete(f.byID, b.call.ID)
	is := func(x *branch) bool { return x == b }
	f.roots = slices.DeleteFunc(f.roots, is)
	if p := f.byID[b.call.Parent]; p != nil {
		p.children = slices.DeleteFunc(p.children, is)
	}
}

// trim drops the oldest calls beyond maxWatched.
func (f *forest) trim() {
	for len(f.byID) > maxWatched && len(f.roots) > 1 {
		f.drop(f.roots[0])
		f.roots = f.roots[1:]
	}
	// A single tree may exceed the bound.
	for len(f.byID) > maxWatched && len(f.roots) > 0 && len(f.roots[0].children) > 0 {
		f.drop(f.roots[0].children[0])
		f.roots[0].children = f.roots[0].children[1:]
	}
}

func (f *forest) drop(b *branch) {
	delete(f.byID, b.call.ID)
	for _, c := range b.children {
		f.drop(c)
	}
}

// A twig is one line of the display.
type twig struct {
	call  *Call
	lead  string // the tree lines before the call
	match bool   // false for ancestors of matching calls
}

// lines returns the lines for the matching calls: as trees with their ancestors, or as a flat list sorted by start.
func (f *forest) lines(want Filter, flat bool) []twig {
	var out []twig
	for _, r := range f.roots {
		out = r.lines(out, want, "", "", 0)
	}
	if !flat {
		return out
	}
	out = slices.DeleteFunc(out, func(t twig) bool { return !t.match })
	for i := range out {
		out[i].lead = ""
	}
	slices.SortStableFunc(out, func(a, b twig) int { return strings.Compare(a.call.ID, b.call.ID) })
	return out
}

func (b *branch) lines(out []twig, want Filter, own, below string, depth int) []twig {
	if depth > 64 || !b.matches(want, depth) {
		return out
	}
	out = append(out, twig{&b.call, own, want.Matches(&b.call)})
	shown := slices.DeleteFunc(slices.Clone(b.children), func(c *branch) bool { return !c.matches(want, depth+1) })
	for i, c := range shown {
		if i < len(shown)-1 {
			out = c.lines(out, want, below+"├ ", below+"│ ", depth+1)
		} else {
			out = c.lines(out, want, below+"└ ", below+"  ", depth+1)
		}
	}
	return out
}

// matches reports whether the call or a descendant matches. The depth is bounded, because a faulty daemon could report
// cycles.
func (b *branch) matches(want Filter, depth int) bool {
	if depth > 64 {
		return false
	}
	return want.Matches(&b.call) || slices.ContainsFunc(b.children,
		func(c *branch) bool { return c.matches(want, depth+1) })
}
