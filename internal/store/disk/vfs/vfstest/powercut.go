package vfstest

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// Mode is how a power cut treats operations that were not synced.
type Mode int

const (
	LoseAll Mode = iota // drops all of them
	KeepAll             // keeps all of them
	AnyOf               // keeps a random selection and tears some writes
)

// Crash returns a file system in a state that a power cut after the first n operations may have left. random is used by
// AnyOf only.
func (f *FS) Crash(n int, mode Mode, random *rand.Rand) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crashed(n, mode, random)
}

// Compact replaces the operations before the first one that a power cut could lose now by fewer ones that lead to the
// same state.
func (f *FS) Compact() {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := newPowerCut(f.ops, LoseAll, nil)
	moved := map[int]int{} // last certain rename of each inode: it carries the file along, created there or not
	for i, op := range f.ops {
		if op.Kind == "rename" && c.certain(i, op) {
			moved[op.Inode] = i
		}
	}
	n, end := 0, 0 // the prefix of n operations ends after the renames that its files need, the last of which is at end
	for i, op := range f.ops {
		if !c.certain(i, op) {
			if op.Kind != "create" || moved[op.Inode] <= i {
				break
			}
			end = max(end, moved[op.Inode])
		}
		if i >= end {
			n = i + 1
		}
	}
	f.ops = append(f.crashed(n, KeepAll, nil).ops, f.ops[n:]...)
}

// certain reports whether operation i survives every power cut.
func (c *powerCut) certain(i int, op Op) bool {
	switch op.Kind {
	case "write", "truncate":
		return max(c.syncedFile[op.Inode], c.syncedAll) > i
	case "create", "remove", "removeall", "renamedir", "mkdir":
		return max(c.syncedDir[path.Dir(op.Name)], c.syncedAll) > i
	case "rename":
		return max(c.syncedDir[path.Dir(op.Name)], c.syncedDir[path.Dir(op.To)], c.syncedAll) > i
	}
	return true
}

// powerCut computes the state after a power cut.
type powerCut struct {
	mode       Mode
	random     *rand.Rand
	syncedFile map[int]int    // index of each inode's last sync
	syncedDir  map[string]int // index of each directory's last sync
	syncedAll  int            // index of the last sync of everything
	out        *FS
	whole      map[int]bool // inodes whose content needs no replay
}

// crashed replays those of the first n operations that survive. The caller holds mu.
func (f *FS) crashed(n int, mode Mode, random *rand.Rand) *FS {
	ops := f.ops[:n]
	c := newPowerCut(ops, mode, random)
	for i, op := range ops {
		if op.Kind != "write" && op.Kind != "truncate" {
			c.rename(i, op)
		}
	}
	for name, x := range c.out.names {
		c.out.names[name], c.out.files[x.id] = x, x
	}
	c.takeOver(f, n)
	for i, op := range ops {
		if op.Kind == "write" || op.Kind == "truncate" {
			c.change(i, op)
		}
	}
	for _, op := range ops {
		c.out.inode = max(c.out.inode, op.Inode)
	}
	c.out.asOps()
	return c.out
}

// newPowerCut finds the last sync of each file and directory.
func newPowerCut(ops []Op, mode Mode, random *rand.Rand) *powerCut {
	c := &powerCut{mode: mode, random: random, syncedFile: map[int]int{}, syncedDir: map[string]int{}, out: New(),
		whole: map[int]bool{}}
	for i, op := range ops {
		switch op.Kind {
		case "sync":
			c.syncedFile[op.Inode] = i
		case "syncdir":
			c.syncedDir[op.Name] = i
		case "syncall":
			c.syncedAll = i
		}
	}
	return c
}

// takeOver takes the content of files that are now as a power cut after n operations leaves them: all their operations
// survive.
func (c *powerCut) takeOver(f *FS, n int) {
	last := map[int]int{}
	for i, op := range f.ops {
		if op.Kind == "write" || op.Kind == "truncate" {
			last[op.Inode] = i
		}
	}
	for id, left := range c.out.files {
		x, i := f.files[id], last[id]
		if x != nil && i < n && (c.mode == KeepAll || max(c.syncedFile[id], c.syncedAll) > i) {
			*left, c.whole[id] = *x.copied(), true
		}
	}
}

// stays decides whether an operation survives. A synced one always does.
func (c *powerCut) stays(synced bool) bool {
	return synced || c.mode == KeepAll || c.mode == AnyOf && c.random.IntN(2) == 0
}

// change replays a write or a truncation, if it survives and its file has a name.
func (c *powerCut) change(i int, op Op) {
	x := c.out.files[op.Inode]
	if x == nil || c.whole[op.Inode] {
		return
	}
	synced := max(c.syncedFile[op.Inode], c.syncedAll) > i
	if !c.stays(synced) {
		return
	}
	if !synced && c.mode == AnyOf && op.Kind == "write" && c.random.IntN(3) == 0 && len(op.Data) > 1 {
		from := c.random.IntN(len(op.Data))
		// A torn write keeps any part of the data, not always its start.
		to := from + c.random.IntN(len(op.Data)-from)
		op.Off, op.Data = op.Off+int64(from), op.Data[from:to]
	}
	x.write(op)
}

// rename replays a change of a directory, if it survives.
func (c *powerCut) rename(i int, op Op) {
	out := c.out
	synced := max(c.syncedDir[path.Dir(op.Name)], c.syncedAll) > i
	switch op.Kind {
	case "create":
		if c.stays(synced) && out.dirs[path.Dir(op.Name)] {
			out.names[op.Name] = &inode{id: op.Inode}
		}
	case "remove":
		if c.stays(synced) {
			delete(out.names, op.Name)
		}
	case "removeall":
		if c.stays(synced) {
			out.apply(op)
		} else if c.mode == AnyOf { // part of the content may be gone
			for _, name := range slices.Sorted(maps.Keys(out.names)) {
				if (name == op.Name || strings.HasPrefix(name, op.Name+"/")) && c.random.IntN(2) == 0 {
					delete(out.names, name)
				}
			}
		}
	case "rename":
		if c.stays(c.syncedDir[path.Dir(op.To)] > i || synced) && out.dirs[path.Dir(op.To)] {
			// The rename carries its file along, even if the file's creation in the other directory was not synced.
			if x := out.names[op.Name]; x != nil && x.id == op.Inode {
				delete(out.names, op.Name)
			}
			out.names[op.To] = &inode{id: op.Inode}
		}
	case "renamedir":
		if c.stays(synced) && out.dirs[op.Name] {
			out.moveDir(op.Name, op.To)
		}
	case "mkdir":
		if c.stays(synced) && out.dirs[path.Dir(op.Name)] {
			out.dirs[op.Name] = true
		}
	}
}

// asOps replaces the recorded operations by some that lead to the current state. What a power cut left is on disk, and
// the next power cut starts from it.
func (f *FS) asOps() {
	dirs := slices.Sorted(maps.Keys(f.dirs))
	for _, dir := range dirs {
		f.ops = append(f.ops, Op{Kind: "mkdir", Name: dir})
	}
	for _, name := range slices.Sorted(maps.Keys(f.names)) {
		x := f.names[name]
		x.frozen = len(x.own)
		f.ops = append(f.ops, Op{Kind: "create", Name: name, Inode: x.id},
			Op{Kind: "write", Inode: x.id, Data: x.base})
		if len(x.own) > 0 {
			f.ops = append(f.ops, Op{Kind: "write", Inode: x.id, Off: int64(len(x.base)), Data: slices.Clip(x.own)})
		}
		if x.zeros > 0 {
			f.ops = append(f.ops, Op{Kind: "truncate", Inode: x.id, Size: x.size()})
		}
		f.ops = append(f.ops, Op{Kind: "sync", Inode: x.id})
	}
	for _, dir := range dirs {
		f.ops = append(f.ops, Op{Kind: "syncdir", Name: dir})
	}
}
