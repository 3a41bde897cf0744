package vfstest

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// Mode says what becomes of what was not synced.
type Mode int

const (
	LoseAll Mode = iota
	KeepAll
	AnyOf
)

// Crash returns a file system as a power cut after the first n operations may have left it.
func (f *FS) Crash(n int, mode Mode, random *rand.Rand) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return crashed(f.ops[:n], mode, random)
}

// powerCut works out what is left after one.
type powerCut struct {
	mode       Mode
	random     *rand.Rand
	syncedFile map[int]int    // when each was last synced
	syncedDir  map[string]int // when each was last synced
	syncedAll  int            // when everything was last synced
	out        *FS
	content    map[int][]byte
}

func crashed(ops []Op, mode Mode, random *rand.Rand) *FS {
	c := powerCut{mode: mode, random: random, syncedFile: map[int]int{}, syncedDir: map[string]int{}, out: New(),
		content: map[int][]byte{}}
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
	for i, op := range ops {
		if op.Kind == "write" || op.Kind == "truncate" {
			c.change(i, op)
		} else {
			c.rename(i, op)
		}
	}
	for _, x := range c.out.names {
		x.data = c.content[x.id]
	}
	for _, op := range ops {
		c.out.inode = max(c.out.inode, op.Inode)
	}
	c.out.asOps()
	return c.out
}

// stays decides about an operation: one that was synced stays.
func (c *powerCut) stays(synced bool) bool {
	return synced || c.mode == KeepAll || c.mode == AnyOf && c.random.IntN(2) == 0
}

// change replays a change of a file's content.
func (c *powerCut) change(i int, op Op) {
	synced := max(c.syncedFile[op.Inode], c.syncedAll) > i
	if !c.stays(synced) {
		return
	}
	if !synced && c.mode == AnyOf && op.Kind == "write" && c.random.IntN(3) == 0 && len(op.Data) > 1 {
		from := c.random.IntN(len(op.Data))
		to := from + c.random.IntN(len(op.Data)-from) // a torn write: some of it, not always from its start
		op.Off, op.Data = op.Off+int64(from), op.Data[from:to]
	}
	c.content[op.Inode] = applyWrite(c.content[op.Inode], op)
}

// rename replays a change of a directory.
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
		} else if c.mode == AnyOf { // some of what it holds may be gone
			for name := range out.names {
				if (name == op.Name || strings.HasPrefix(name, op.Name+"/")) && c.random.IntN(2) == 0 {
					delete(out.names, name)
				}
			}
		}
	case "rename":
		if c.stays(c.syncedDir[path.Dir(op.To)] > i || synced) && out.dirs[path.Dir(op.To)] {
			// It moves its file, also one whose creation in the other directory nobody synced.
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

// asOps makes the operations those that lead to what is there: what a power cut left is on disk, and the next one
// starts from it.
func (f *FS) asOps() {
	for dir := range f.dirs {
		f.ops = append(f.ops, Op{Kind: "mkdir", Name: dir})
	}
	slices.SortFunc(f.ops, func(a, b Op) int { return strings.Compare(a.Name, b.Name) })
	for name, x := range f.names {
		f.ops = append(f.ops, Op{Kind: "create", Name: name, Inode: x.id}, Op{Kind: "write", Inode: x.id, Data: x.data},
			Op{Kind: "sync", Inode: x.id})
	}
	for dir := range f.dirs {
		f.ops = append(f.ops, Op{Kind: "syncdir", Name: dir})
	}
}
