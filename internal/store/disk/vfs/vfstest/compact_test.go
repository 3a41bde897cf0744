package vfstest

import (
	"fmt"
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

// put writes a few bytes to a file, and may sync it.
func put(f *FS, name string, random *rand.Rand) {
	x, err := f.Open(name, true)
	if err != nil {
		panic(err) // its directory exists, and nothing fails
	}
	_, _ = x.WriteAt([]byte(fmt.Sprint(random.IntN(1000))), random.Int64N(4))
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
		left := f.Crash(len(f.Ops()), mode, nil)
		text += left.Text() + "\n"
		for _, name := range []string{"a/x", "a/y", "b/x", "b/y"} {
			data, _ := left.ReadFile(name) // "" if it is missing
			text += fmt.Sprintf("%s: %q\n", name, data)
		}
	}
	return text
}
