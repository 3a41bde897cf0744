package vfstest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// After operations are compacted, power cuts leave what they could leave before.
func TestCompact(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	fewer := 0
	for round := range 200 {
		f := New()
		for range 40 {
			step(f, random)
		}
		before, ops := contents(f), len(f.Ops())
		f.Compact()
		if len(f.Ops()) < ops {
			fewer++
		}
		if after := contents(f); after != before {
			t.Fatalf("round %d: a power cut left\n%s\nand after the operations were compacted\n%s", round, before, after)
		}
	}
	if fewer < 20 {
		t.Errorf("operations became fewer in %d rounds", fewer)
	}
}

// What a power cut leaves does not depend on the state in memory, part of which it takes over.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 1))
	taken := 0
	for round := range 200 {
		f := New()
		for range 40 {
			step(f, random)
		}
		for range 4 {
			at, seed := random.IntN(len(f.Ops())+1), random.Uint64()
			for _, mode := range []Mode{LoseAll, KeepAll, AnyOf} {
				draws := func() *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
				want := listing((&FS{ops: f.ops}).Crash(at, mode, draws())) // without files all is replayed
				taken += f.taken(at, mode)
				if got := listing(f.Crash(at, mode, draws())); got != want {
					t.Fatalf("round %d, mode %d after %d operations: a power cut left\n%s, want\n%s", round, mode, at, got, want)
				}
			}
		}
	}
	if taken < 100 {
		t.Errorf("%d files were taken over", taken)
	}
}

// taken returns how many files are taken over if a power cut comes after n operations.
func (f *FS) taken(n int, mode Mode) int {
	c := newPowerCut(f.ops[:n], mode, rand.New(rand.NewPCG(1, 1)))
	maps.Copy(c.out.files, f.files)
	for id := range c.out.files {
		c.out.files[id] = &inode{id: id}
	}
	c.takeOver(f, n)
	return len(c.whole)
}

// step does something to one of four files, which are written in a third directory or in place.
func step(f *FS, random *rand.Rand) {
	dir := []string{"a", "b"}[random.IntN(2)]
	name := dir + "/" + []string{"x", "y"}[random.IntN(2)]
	for _, d := range []string{"a", "b", "tmp"} {
		_ = f.Mkdir(d) // New has none of them
	}
	switch random.IntN(7) {
	case 0:
		_ = f.Remove(name) // it may be missing
	case 1:
		_ = f.SyncDir(dir)
	case 2:
		_ = f.SyncAll()
	case 3, 4:
		put(f, fmt.Sprint("tmp/", random.IntN(1000)), random)
		_ = f.Rename(f.newest(), name)
	default:
		put(f, name, random)
	}
}

// put writes a few bytes or zeros to a file or changes its length, and may sync it.
func put(f *FS, name string, random *rand.Rand) {
	x, err := f.Open(name, true)
	if err != nil {
		panic(err) // its directory exists, and nothing fails
	}
	switch random.IntN(4) {
	case 0:
		_ = x.Truncate(random.Int64N(12))
	case 1:
		_, _ = x.WriteAt(make([]byte, 1+random.IntN(6)), random.Int64N(8))
	default:
		_, _ = x.WriteAt([]byte(fmt.Sprint(random.IntN(1000))), random.Int64N(4))
	}
	if random.IntN(2) == 0 {
		_ = x.Sync()
	}
}

// newest returns the name of the file in tmp, or a missing one.
func (f *FS) newest() string {
	list, _ := f.List("tmp")
	if len(list) == 0 {
		return "tmp/none"
	}
	return "tmp/" + list[0]
}

// contents returns what power cuts that keep nothing or everything leave.
func contents(f *FS) (text string) {
	for _, mode := range []Mode{LoseAll, KeepAll} {
		text += listing(f.Crash(len(f.Ops()), mode, nil))
	}
	return text
}

// listing returns the files with their contents.
func listing(f *FS) string {
	text := f.Text() + "\n"
	for _, name := range []string{"a/x", "a/y", "b/x", "b/y"} {
		data, _ := f.ReadFile(name) // "" if it is missing
		text += fmt.Sprintf("%s: %q\n", name, data)
	}
	return text
}
