package maphash_test

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"hash"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/native/support/maphash"
)

// The package has the functions and methods of hash/maphash, with as many parameters and results, because programs are
// checked against those.
func TestIsHashMaphash(t *testing.T) {
	t.Parallel()
	own, theirs := functions(t, "."), functions(t, filepath.Join(build.Default.GOROOT, "src", "hash", "maphash"))
	if !maps.Equal(own, theirs) {
		t.Errorf("got %v, want %v", own, theirs)
	}
}

// functions returns the exported functions and methods of the package in the directory, with their numbers of
// parameters and results.
func functions(t *testing.T, dir string) map[string][2]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	all := map[string][2]int{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, is := d.(*ast.FuncDecl); is && d.Name.IsExported() {
				name := d.Name.Name
				if d.Recv != nil {
					name = types.ExprString(d.Recv.List[0].Type) + "." + name
				}
				all[name] = [2]int{d.Type.Params.NumFields(), d.Type.Results.NumFields()}
			}
		}
	}
	return all
}

// Equal values have equal hashes, and different values different ones. A zero Seed panics.
func TestHashes(t *testing.T) {
	t.Parallel()
	type pair struct {
		a string
		_ int
		b any
	}
	s, other := maphash.MakeSeed(), maphash.MakeSeed()
	var h maphash.Hash
	h.SetSeed(s)
	h.WriteString("a ")
	copied := h
	h.Write([]byte("text"))
	_ = copied.WriteByte('x')
	zero, none, at := math.Copysign(0, -1), math.NaN(), &h
	for name, same := range map[string]bool{
		"a text and its bytes": maphash.String(s, "a text") == maphash.Bytes(s, []byte("a text")) &&
			h.Sum64() == maphash.String(s, "a text"),
		"a copy":                copied.Sum64() == maphash.String(s, "a x"),
		"both zeros":            maphash.Comparable(s, zero) == maphash.Comparable(s, 0.0),
		"structs":               maphash.Comparable(s, pair{"a", 1, 0.0}) == maphash.Comparable(s, pair{"a", 2, zero}),
		"pointers to one thing": maphash.Comparable(s, &h) == maphash.Comparable(s, at),
		"nothing":               maphash.Comparable[error](s, nil) == maphash.Comparable[any](s, nil),
	} {
		if !same {
			t.Errorf("%s have two hashes", name)
		}
	}
	for name, same := range map[string]bool{
		"another seed":  maphash.String(s, "a") == maphash.String(other, "a"),
		"another text":  maphash.String(s, "a") == maphash.String(s, "b"),
		"another type":  maphash.Comparable[any](s, 1) == maphash.Comparable[any](s, int8(1)),
		"parts":         maphash.Comparable(s, [2]string{"ab", "c"}) == maphash.Comparable(s, [2]string{"a", "bc"}),
		"nil":           maphash.Comparable(s, (*int)(nil)) == maphash.Comparable(s, new(int)),
		"bool":          maphash.Comparable(s, true) == maphash.Comparable(s, false),
		"not a number":  maphash.Comparable(s, none) == maphash.Comparable(s, math.NaN()),
		"complex":       maphash.Comparable(s, 1i) == maphash.Comparable(s, 1+0i),
		"without signs": maphash.Comparable(s, uint(1)) == maphash.Comparable(s, uint(2)),
	} {
		if same {
			t.Errorf("%s: the hash is the same", name)
		}
	}
	if sum := h.Sum([]byte{9}); len(sum) != 1+h.Size() || h.BlockSize() != 128 || !bytes.Equal(sum[:1], []byte{9}) {
		t.Errorf("the sum: %v", sum)
	}
	clone, err := h.Clone()
	if c, is := clone.(hash.Hash64); err != nil || !is || c.Sum64() != h.Sum64() {
		t.Errorf("the clone: %v, %v", clone, err)
	}
	var fresh, same maphash.Hash
	same.SetSeed(fresh.Seed())
	maphash.WriteComparable(&fresh, 1)
	maphash.WriteComparable(&same, 1)
	if fresh.Sum64() != same.Sum64() {
		t.Error("a hash without a seed does not keep the one that it draws")
	}
	for name, f := range map[string]func(){
		"a seed that nobody made":   func() { maphash.String(maphash.Seed{}, "a") },
		"what cannot be compared":   func() { maphash.Comparable[any](s, []int{1}) },
		"with such a thing in it":   func() { maphash.Comparable(s, pair{"", 0, []int{1}}) },
		"a seed that a hash is set": func() { new(maphash.Hash).SetSeed(maphash.Seed{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
