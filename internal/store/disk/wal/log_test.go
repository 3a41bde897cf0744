package wal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
)

const dir = "journal"

// newLog returns an empty log on an in-memory file system.
func newLog(t *testing.T, segmentBytes int64) (*Log, *vfstest.FS) {
	t.Helper()
	fs := vfstest.New()
	if err := errors.Join(fs.Mkdir(dir), fs.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	l := New(fs, dir, segmentBytes)
	if err := l.Continue(1, nil); err != nil {
		t.Fatal(err)
	}
	return l, fs
}

func batch(entries ...string) *Batch {
	b := &Batch{}
	b.Reset()
	for _, e := range entries {
		b.Add([]byte(e))
	}
	return b
}

// contents reads all entries of a log with their numbers, and the gaps.
func contents(t *testing.T, fs vfs.FS) (entries []string, gaps []Gap) {
	t.Helper()
	segments, err := Segments(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		_, g, err := s.Read(fs, func(lsn uint64, entry []byte) error {
			entries = append(entries, fmt.Sprint(lsn, entry, string(entry)))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		gaps = append(gaps, g...)
	}
	return entries, gaps
}

func numbered(first int, entries ...string) []string {
	out := []string{}
	for i, e := range entries {
		out = append(out, fmt.Sprint(uint64(first+i), []byte(e), e))
	}
	return out
}

func names(segments []Segment) string {
	out := []string{}
	for _, s := range segments {
		out = append(out, fmt.Sprint(s.First))
	}
	return strings.Join(out, " ")
}

func write(t *testing.T, l *Log, entries ...string) {
	t.Helper()
	if err := l.Write(batch(entries...), true); err != nil {
		t.Fatal(err)
	}
}

func TestLogReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	l, fs := newLog(t, 1<<20)
	write(t, l, "a", "", "c")
	write(t, l, strings.Repeat("long ", 1000))
	if l.Next() != 5 || !l.Writable() {
		t.Errorf("got next %d, writable %v, want 5, true", l.Next(), l.Writable())
	}
	got, gaps := contents(t, fs)
	if want := numbered(1, "a", "", "c", strings.Repeat("long ", 1000)); !slices.Equal(got, want) || len(gaps) > 0 {
		t.Errorf("got %q with gaps %v, want %q", got, gaps, want)
	}
}

func TestLogRotatesAndCuts(t *testing.T) {
	t.Parallel()
	l, fs := newLog(t, 64)
	for i := range 4 { // two frames do not fit into 64 bytes
		write(t, l, fmt.Sprintf("entry %d with some length", i))
	}
	if got := names(l.Closed()); got != "1 2 3" {
		t.Fatalf("got closed segments %s, want 1 2 3", got)
	}
	before := l.Bytes()
	if dropped := l.Cut(0); len(dropped) != 0 {
		t.Errorf("cut at 0 dropped %s", names(dropped))
	}
	dropped := l.Cut(2)
	if names(dropped) != "1 2" || names(l.Closed()) != "3" || l.Bytes() >= before {
		t.Errorf("got dropped %s, closed %s, %d of %d bytes, want 1 2, 3 and fewer", names(dropped), names(l.Closed()),
			l.Bytes(), before)
	}
	if err := Remove(fs, dir, dropped); err != nil {
		t.Fatal(err)
	}
	if got, want := first(contents(t, fs)), numbered(3, "entry 2 with some length",
		"entry 3 with some length"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if dropped := l.Cut(3); names(dropped) != "3" {
		t.Errorf("got dropped %s, want 3", names(dropped))
	}
	if dropped := l.Cut(100); len(dropped) != 0 {
		t.Errorf("got dropped %s, want none: the active segment stays", names(dropped))
	}
	if err := l.Rotate(); err != nil || names(l.Closed()) != "4" {
		t.Errorf("got closed %s, %v, want 4", names(l.Closed()), err)
	}
	if err := l.Rotate(); err != nil || names(l.Closed()) != "4" {
		t.Errorf("rotating an empty segment: got closed %s, %v, want 4", names(l.Closed()), err)
	}
	if dropped := l.Cut(4); names(dropped) != "4" || l.Bytes() != 0 {
		t.Errorf("got dropped %s with %d bytes left, want 4 and none", names(dropped), l.Bytes())
	}
}

// A segment is filled with frames up to its last byte.
func TestSegmentsFillUp(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t, 64)
	for _, closed := range []string{"", "", "1"} { // frames of 32 bytes
		write(t, l, "7 bytes")
		if got := names(l.Closed()); got != closed {
			t.Errorf("after entry %d: got closed %q, want %q", l.Next()-1, got, closed)
		}
	}
}

// A segment has zeros after its frames, up to zeroAhead, so that syncing the next frame changes no metadata.
func TestZerosStandAhead(t *testing.T) {
	t.Parallel()
	const room = 3 * zeroAhead
	l, fs := newLog(t, room)
	for _, entry := range []int{100, 200, zeroAhead / 2, zeroAhead, zeroAhead} {
		write(t, l, strings.Repeat("x", entry))
		f, err := fs.Open(l.active.Name, false)
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Size()
		if err != nil || size <= l.active.bytes || size > room || size > l.active.bytes+zeroAhead {
			t.Fatalf("got a file of %d bytes, %v, with frames of %d: want zeros behind them, up to %d bytes and to %d",
				size, err, l.active.bytes, zeroAhead, room)
		}
		behind := make([]byte, size-l.active.bytes)
		if _, err := f.ReadAt(behind, l.active.bytes); err != nil || bytes.Count(behind, []byte{0}) != len(behind) {
			t.Errorf("after an entry of %d bytes: got something else than zeros behind the frames, or %v", entry, err)
		}
	}
	if entries, gaps := contents(t, fs); len(entries) != 5 || len(gaps) != 0 {
		t.Errorf("got %d entries and gaps %v, want 5 and none", len(entries), gaps)
	}
}

func first(entries []string, _ []Gap) []string { return entries }

func TestLogContinues(t *testing.T) {
	t.Parallel()
	l, fs := newLog(t, 1<<20)
	write(t, l, "a", "b")
	l.Close()
	if l.Writable() {
		t.Error("a closed log is writable")
	}
	segments, err := Segments(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	next := New(fs, dir, 1<<20)
	if err := next.Continue(3, segments); err != nil {
		t.Fatal(err)
	}
	write(t, next, "c")
	if got, want := first(contents(t, fs)), numbered(1, "a", "b", "c"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := names(next.Closed()); got != "1" {
		t.Errorf("got closed %s, want 1", got)
	}
	next.Close()
	again := New(fs, dir, 1<<20)
	if err := again.Continue(3, []Segment{{Name: segmentName(dir, 3), First: 3}}); err != nil {
		t.Fatal(err)
	}
	if len(again.Closed()) != 0 {
		t.Errorf("got closed %s, want none: the empty segment's name is used again", names(again.Closed()))
	}
}

// TestLogRefusesWhatFailed makes each operation of a write fail. The batch is refused, the log accepts nothing until it
// is rotated, and the refused batch never reappears, even if it reached the disk.
func TestLogRefusesWhatFailed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"write", "sync"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l, fs := newLog(t, 1<<20)
			write(t, l, "a")
			fs.Fail = func(_ int, op vfstest.Op) (error, bool) {
				if op.Kind == kind || op.Kind == "truncate" {
					return vfstest.ErrInjected, false
				}
				return nil, false
			}
			if err := l.Write(batch("refused"), true); !errors.Is(err, vfstest.ErrInjected) {
				t.Fatalf("got %v, want the injected error", err)
			}
			if l.Writable() || l.Next() != 2 || names(l.Closed()) != "1" {
				t.Errorf("got writable %v, next %d, closed %s, want false, 2 and 1", l.Writable(), l.Next(),
					names(l.Closed()))
			}
			if err := l.Write(batch("refused too"), true); err == nil {
				t.Error("it took a batch before a new segment was there")
			}
			fs.Fail = nil
			if err := l.Rotate(); err != nil {
				t.Fatal(err)
			}
			write(t, l, "b")
			for i, mode := range []vfstest.Mode{vfstest.LoseAll, vfstest.KeepAll} {
				left := fs.Crash(len(fs.Ops()), mode, rand.New(rand.NewPCG(1, uint64(i))))
				if got, want := first(contents(t, left)), numbered(1, "a", "b"); !slices.Equal(got, want) {
					t.Errorf("after a power cut, way %d: got %q, want %q", i, got, want)
				}
			}
		})
	}
}

func TestLogTakesAPanicForAFailedWrite(t *testing.T) {
	t.Parallel()
	l, fs := newLog(t, 1<<20)
	fs.Fail = func(_ int, op vfstest.Op) (error, bool) {
		if op.Kind == "write" {
			panic("a bug")
		}
		return nil, false
	}
	if err := l.Write(batch("a"), true); err == nil || !strings.Contains(err.Error(), "a bug") || l.Writable() {
		t.Errorf("got %v, writable %v, want the panic as an error and false", err, l.Writable())
	}
	if closed := l.Closed(); len(closed) != 0 {
		t.Errorf("got closed %s, want none: the segment is empty", names(closed))
	}
}

// TestLogAfterPowerCuts cuts the power after every operation. Accepted batches are kept, and the batch being written is
// kept completely or not at all.
func TestLogAfterPowerCuts(t *testing.T) {
	t.Parallel()
	l, fs := newLog(t, 200)
	batches := [][]string{{"a"}, {"b", "c", "d"}, {strings.Repeat("e", 300)}, {"f", ""}, {"g"}}
	prefixes := []int{0}
	for i, b := range batches {
		fs.Mark(2 * i)
		write(t, l, b...)
		fs.Mark(2*i + 1)
		prefixes = append(prefixes, prefixes[i]+len(b))
	}
	all := numbered(1, slices.Concat(batches...)...)
	began, accepted := 0, 0
	for n, op := range fs.Ops() {
		if op.Kind == "mark" {
			began, accepted = op.Mark/2+1, (op.Mark+1)/2
			continue
		}
		for way, mode := range []vfstest.Mode{vfstest.LoseAll, vfstest.KeepAll, vfstest.AnyOf, vfstest.AnyOf} {
			left := fs.Crash(n+1, mode, rand.New(rand.NewPCG(uint64(n), uint64(way))))
			if _, err := left.Stat(dir); vfs.NotExist(err) {
				continue
			}
			got := first(contents(t, left))
			if !slices.Equal(got, all[:prefixes[accepted]]) && !slices.Equal(got, all[:prefixes[began]]) {
				t.Fatalf("after %v, way %d: got %q, want the first %d or %d entries", op, way, got, prefixes[accepted],
					prefixes[began])
			}
		}
	}
}

func TestDamageLeavesAGap(t *testing.T) {
	t.Parallel()
	l, fs := newLog(t, 1<<20)
	for _, e := range []string{"one", "two", "three"} {
		write(t, l, e)
	}
	if err := l.Rotate(); err != nil {
		t.Fatal(err)
	}
	write(t, l, "four")
	segment := l.Closed()[0].Name
	data, err := fs.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]struct {
		entries []string
		gap     Gap
	}{
		"two": {slices.Concat(numbered(1, "one"), numbered(3, "three"), numbered(4, "four")), Gap{2, 3}},
		// only the next segment follows it
		"three": {slices.Concat(numbered(1, "one", "two"), numbered(4, "four")), Gap{3, 4}},
	} {
		damaged := slices.Clone(data)
		damaged[strings.Index(string(data), at)] ^= 1
		f, err := fs.Open(segment, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(damaged, 0); err != nil {
			t.Fatal(err)
		}
		got, gaps := contents(t, fs)
		if !slices.Equal(got, want.entries) || !slices.Equal(gaps, []Gap{want.gap}) {
			t.Errorf("damage in %s: got %q with gaps %v, want %q with %v", at, got, gaps, want.entries, want.gap)
		}
	}
}

// TestCreateWithLittleSpace starts a log on a disk without room for a whole segment.
func TestCreateWithLittleSpace(t *testing.T) {
	t.Parallel()
	fs := vfstest.New()
	if err := fs.Mkdir(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		free, segment int64
		fits          bool
	}{
		{1 << 20, 8 << 20, true}, {64 << 10, 8 << 20, true}, {1 << 10, 8 << 20, false},
		{32 << 10, 64 << 10, false}, // so small a segment is not reduced further
	} {
		l := New(smallFS{fs, c.free}, dir, c.segment)
		if err := l.Continue(1, nil); (err == nil) != c.fits {
			t.Errorf("%d bytes free: got %v, want success %v", c.free, err, c.fits)
		}
		l.Close()
	}
}

// smallFS has room for files of up to free bytes.
type smallFS struct {
	vfs.FS
	free int64
}

func (f smallFS) Open(name string, create bool) (vfs.File, error) {
	file, err := f.FS.Open(name, create)
	return smallFile{file, f.free}, err
}

type smallFile struct {
	vfs.File
	free int64
}

func (f smallFile) Preallocate(size int64) error {
	if size > f.free {
		return errors.New("no space left")
	}
	return nil
}

func TestSegmentNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"00000000000000000034.wal": true, "checkpoint.json": false, "34.wal": false,
		"00000000000000000034.wal.corrupt-1": false,
		"0000000000000000003x.wal":           false, "99999999999999999999.wal": false,
	} {
		if got := IsSegment(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
