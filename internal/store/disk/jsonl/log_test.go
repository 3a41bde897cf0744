package jsonl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
)

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// logTest is a log of lines {"id":"<n>","at":<seconds>}, with what Open found to be missing.
type logTest struct {
	*Log
	t    *testing.T
	fs   *vfstest.FS
	now  time.Time
	lost int64
}

func options(fs vfs.FS, current string) Options {
	return Options{
		Files: &vfs.Replacer{FS: fs}, Dir: "log", Current: current, Bytes: 100, Now: func() time.Time { return start },
		Keys: func(line []byte) []uint64 { return []uint64{Key(Member(line, "id"))} },
		Time: func(line []byte) (time.Time, bool) {
			at, err := time.Parse(time.RFC3339, Member(line, "at"))
			return at, err == nil
		},
	}
}

func openLog(t *testing.T, fs *vfstest.FS, current string, at *Place) *logTest {
	t.Helper()
	l := &logTest{t: t, fs: fs, now: start}
	o := options(fs, current)
	o.Now = func() time.Time { return l.now }
	o.Lost = func(_ string, bytes int64) { l.lost += bytes }
	l.Log = New(o)
	if err := errors.Join(fs.Mkdir("log"), fs.SyncDir("."), o.Files.Clean(), l.Open(at)); err != nil {
		t.Fatal(err)
	}
	return l
}

func line(id int) string {
	return fmt.Sprintf(`{"id":"%d","at":"%s"}`, id, start.Add(time.Duration(id)*time.Hour).Format(time.RFC3339))
}

// add appends lines one at a time, so that segments fill up.
func (l *logTest) add(ids ...int) {
	l.t.Helper()
	for _, id := range ids {
		if err := l.Rotate(); err != nil {
			l.t.Fatal(err)
		}
		lines := textOf(line(id))
		if err := l.Append(lines); err != nil {
			l.t.Fatal(err)
		}
		l.Publish(lines)
	}
}

func textOf(lines ...string) *Text {
	t := &Text{}
	for _, line := range lines {
		_ = t.Add(func(b []byte) ([]byte, error) { return append(b, line...), nil })
	}
	return t
}

func (l *logTest) ids() []string {
	l.t.Helper()
	out := []string{}
	if err := l.Backward(l.t.Context(), l.End(), func(line []byte) (bool, error) {
		out = append(out, Member(line, "id"))
		return false, nil
	}); err != nil {
		l.t.Fatal(err)
	}
	slices.Reverse(out)
	return out
}

func (l *logTest) find(id int) string {
	l.t.Helper()
	found := ""
	if err := l.Find(Key(fmt.Sprint(id)), func(line []byte) bool { found = string(line); return true }); err != nil {
		l.t.Fatal(err)
	}
	return found
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func same(got []string, want []int) bool { return fmt.Sprint(got) == fmt.Sprint(want) }

// eachCurrent runs a test twice: with the current segment in the directory of the closed ones, and in a file of its
// own.
func eachCurrent(t *testing.T, test func(t *testing.T, current string)) {
	t.Parallel()
	for _, current := range []string{"", "current.jsonl"} {
		t.Run("current="+current, func(t *testing.T) { t.Parallel(); test(t, current) })
	}
}

func TestLogFindsEachLine(t *testing.T) {
	eachCurrent(t, func(t *testing.T, current string) {
		l := openLog(t, vfstest.New(), current, nil)
		l.add(upTo(20)...)
		if len(l.closed) < 3 {
			t.Fatalf("got %d closed segments, want several", len(l.closed))
		}
		check := func(when string, l *logTest) {
			t.Helper()
			if got := l.ids(); !same(got, upTo(20)) {
				t.Errorf("%s: got %v", when, got)
			}
			for id := range 20 {
				if got := l.find(id); got != line(id) {
					t.Errorf("%s: got %q, want %q", when, got, line(id))
				}
			}
			if got := l.find(20); got != "" {
				t.Errorf("%s: got %q for a key that is not there", when, got)
			}
		}
		check("at once", l)
		at, err := l.Sync()
		if err != nil {
			t.Fatal(err)
		}
		check("opened again", openLog(t, l.fs, current, &at))
		for _, seg := range l.closed {
			if err := l.fs.Remove(l.indexFile(seg.number)); err != nil {
				t.Fatal(err)
			}
		}
		check("without its indexes", l)
		f, err := l.fs.Open(l.indexFile(l.closed[0].number), false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("no index"), 0); err != nil {
			t.Fatal(err)
		}
		check("with a damaged index", l)
	})
}

func TestLogPages(t *testing.T) {
	eachCurrent(t, func(t *testing.T, current string) {
		l := openLog(t, vfstest.New(), current, nil)
		l.add(upTo(12)...)
		for id := range 12 {
			at, err := l.Locate(Key(fmt.Sprint(id)),
				func(line []byte) bool { return Member(line, "id") == fmt.Sprint(id) })
			if err != nil || at == nil {
				t.Fatalf("%d: got %v, %v", id, at, err)
			}
			got := []string{}
			if err := l.Backward(t.Context(), *at, func(line []byte) (bool, error) {
				got = append(got, Member(line, "id"))
				return len(got) == 3, nil
			}); err != nil {
				t.Fatal(err)
			}
			slices.Reverse(got)
			if want := upTo(id)[max(0, id-3):]; !same(got, want) {
				t.Errorf("before %d: got %v, want %v", id, got, want)
			}
			forward := func(from, end Place, most int) (got []string) {
				if err := l.Forward(t.Context(), from, end, func(line []byte) (bool, error) {
					got = append(got, Member(line, "id"))
					return len(got) == most, nil
				}); err != nil {
					t.Fatal(err)
				}
				return got
			}
			if got, want := forward(*at, l.End(), 3), upTo(12)[id:min(id+3, 12)]; !same(got, want) {
				t.Errorf("from %d: got %v, want %v", id, got, want)
			}
			if got, want := forward(Place{}, *at, 100), upTo(id); !same(got, want) {
				t.Errorf("up to %d: got %v, want %v", id, got, want)
			}
		}
		if at, err := l.Locate(Key("none"), func([]byte) bool { return true }); at != nil || err != nil {
			t.Errorf("got %v, %v for a key that is not there", at, err)
		}
	})
}

func TestFindWithinSkipsOtherTimes(t *testing.T) {
	t.Parallel()
	l := openLog(t, vfstest.New(), "", nil)
	for id := range 12 {
		l.now = start.Add(time.Duration(id) * time.Hour)
		l.add(id)
	}
	for id := range 12 {
		at := start.Add(time.Duration(id) * time.Hour)
		for name, c := range map[string]struct {
			since, until time.Time
			found        bool
		}{
			"around":    {at.Add(-time.Minute), at.Add(time.Minute), true},
			"no bound":  {time.Time{}, time.Time{}, true},
			"far later": {start.Add(100 * time.Hour), time.Time{}, id >= 9}, // the current segment is always read
		} {
			found := false
			if err := l.FindWithin(Key(fmt.Sprint(id)), c.since, c.until,
				func([]byte) bool { found = true; return true }); err != nil || found != c.found {
				t.Errorf("%d %s: got found %v, %v, want %v", id, name, found, err, c.found)
			}
		}
	}
}

func TestLogDropsItsOldest(t *testing.T) {
	eachCurrent(t, func(t *testing.T, current string) {
		l := openLog(t, vfstest.New(), current, nil)
		if oldest, err := l.Oldest(); oldest != nil || err != nil {
			t.Errorf("got the oldest line %q, %v of an empty log", oldest, err)
		}
		l.add(upTo(12)...)
		closed := len(l.closed)
		var gone []string
		took := func(line []byte) { gone = append(gone, Member(line, "id")) }
		if err := l.Drop(func(seg Segment, total int64) bool { return total > 300 && !seg.Newest.IsZero() },
			took); err != nil {
			t.Fatal(err)
		}
		if len(l.closed) == closed || len(l.closed) == 0 {
			t.Fatalf("got %d of %d closed segments, want fewer but some", len(l.closed), closed)
		}
		left := l.ids()
		if slices.Sort(gone); len(gone)+len(left) != 12 || slices.ContainsFunc(gone,
			func(id string) bool { return slices.Contains(left, id) }) {
			t.Errorf("reported %v, %v are left", gone, left)
		}
		defer func() {
			if err := l.Drop(func(Segment, int64) bool { return true },
				nil); err != nil || len(l.closed) > 0 || l.find(11) == "" {
				t.Errorf("got %d closed segments, %v after all were dropped, want none, and the current one",
					len(l.closed), err)
			}
		}()
		oldest, err := l.Oldest()
		if err != nil || Member(oldest, "id") != left[0] || left[0] == "0" {
			t.Errorf("got the oldest line %q, %v, want that of %s, which is not 0", oldest, err, left[0])
		}
		if got := l.find(0); got != "" {
			t.Errorf("got %q, which was dropped", got)
		}
		if got := l.find(11); got == "" {
			t.Error("the newest line is gone")
		}
	})
}

func TestEraseKeepsTheOffsets(t *testing.T) {
	eachCurrent(t, func(t *testing.T, current string) {
		l := openLog(t, vfstest.New(), current, nil)
		l.add(upTo(12)...)
		odd := func(line []byte) bool { return strings.ContainsAny(Member(line, "id"), "13579") }
		short := func([]byte) []byte { return []byte(`{"id":""}`) }
		if err := l.Erase(odd, short, time.Time{}); err != nil {
			t.Fatal(err)
		}
		for id := range 12 {
			got := l.find(id)
			if erased := odd([]byte(line(id))); erased && strings.TrimRight(got, " ") != `{"id":""}` || !erased &&
				got != line(id) {
				t.Errorf("%d: got %q", id, got)
			}
		}
		same := func(line []byte) []byte { return []byte(strings.ReplaceAll(string(line), "T", " ")) }
		if err := l.Erase(func(line []byte) bool { return Member(line, "id") == "4" }, same, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if got := l.find(4); got != string(same([]byte(line(4)))) {
			t.Errorf("a line as long: got %q", got)
		}
		even := func(line []byte) bool { return Member(line, "id") == "2" }
		if err := l.Erase(even, func(line []byte) []byte { return append(slices.Clone(line), "too long"...) },
			time.Time{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimRight(l.find(2), " "); got != "{}" {
			t.Errorf("a longer line: got %q, want {}", got)
		}
		if err := l.Erase(func([]byte) bool { return true }, short, start.Add(1000*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := l.find(0); got != line(0) {
			t.Errorf("got %q, want that segments which are older than what is erased stay", got)
		}
	})
}

// openSynced opens a log of nine lines. It was synced after each line, with a mark among the operations. The places are
// those of the syncs.
func openSynced(t *testing.T, current string) (*logTest, []Place) {
	t.Helper()
	l := openLog(t, vfstest.New(), current, nil)
	places := []Place{{1, 0}}
	for id := range 9 {
		l.add(id)
		at, err := l.Sync()
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, at)
		l.fs.Mark(len(places) - 1)
	}
	return l, places
}

// TestOpenTakesTheLogBack opens a log at each place where it was synced, with all later data in its files. Only the
// lines before that place remain.
func TestOpenTakesTheLogBack(t *testing.T) {
	eachCurrent(t, func(t *testing.T, current string) {
		l, places := openSynced(t, current)
		ops := len(l.fs.Ops())
		for n, at := range places {
			again := openLog(t, l.fs.Crash(ops, vfstest.KeepAll, nil), current, &at)
			if got := again.ids(); !same(got, upTo(n)) {
				t.Errorf("at %+v: got %v, want %v", at, got, upTo(n))
			}
			again.add(100)
			if got := again.find(100); got != line(100) || again.lost != 0 {
				t.Errorf("at %+v: got %q, %d bytes lost", at, got, again.lost)
			}
		}
	})
}

func TestOpenWithATornEnd(t *testing.T) {
	eachCurrent(t, func(t *testing.T, current string) {
		l := openLog(t, vfstest.New(), current, nil)
		l.add(0, 1)
		at, err := l.Sync()
		if err != nil {
			t.Fatal(err)
		}
		if err := Cut(l.fs, l.file(1), at.Bytes-5); err != nil {
			t.Fatal(err)
		}
		torn := openLog(t, l.fs.Crash(len(l.fs.Ops()), vfstest.KeepAll, nil), current, &at)
		if torn.lost != 5 {
			t.Errorf("got %d bytes lost, want 5", torn.lost)
		}
		torn.add(2)
		if got := torn.find(2); got != line(2) {
			t.Errorf("got %q, want a line of its own behind the torn one", got)
		}
		trimmed := openLog(t, l.fs.Crash(len(l.fs.Ops()), vfstest.KeepAll, nil), current, nil)
		if got := trimmed.ids(); !same(got, upTo(1)) {
			t.Errorf("without a place: got %v, want that the torn line is cut off", got)
		}
	})
}

// TestLogAfterPowerCuts cuts the power after every operation of a log that is synced after each line. Opened at the
// last synced place, it has every line up to there.
func TestLogAfterPowerCuts(t *testing.T) {
	eachCurrent(t, func(t *testing.T, current string) {
		l, places := openSynced(t, current)
		synced := 0
		for n, op := range l.fs.Ops() {
			if op.Kind == "mark" {
				synced = op.Mark
			}
			for way, mode := range []vfstest.Mode{vfstest.LoseAll, vfstest.KeepAll, vfstest.AnyOf} {
				left := l.fs.Crash(n+1, mode, rand.New(rand.NewPCG(uint64(n), uint64(way))))
				again := openLog(t, left, current, &places[synced])
				if got := again.ids(); !same(got, upTo(synced)) {
					t.Fatalf("after %v, way %d: got %v, want %v", op, way, got, upTo(synced))
				}
			}
		}
	})
}

func TestRepair(t *testing.T) {
	t.Parallel()
	l := openLog(t, vfstest.New(), "", nil)
	l.add(upTo(9)...)
	f, err := l.fs.Open(l.closedFile(1), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	aside := []string{}
	if err := l.Repair(func(name string) error { aside = append(aside, name); return nil }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(aside) != "["+l.closedFile(1)+"]" {
		t.Errorf("got aside %v, want the damaged file", aside)
	}
	if got := l.find(0); got != "" {
		t.Errorf("got %q, want the damaged line gone", got)
	}
	for id := 1; id < 9; id++ {
		if got := l.find(id); got != line(id) {
			t.Errorf("got %q, want %q", got, line(id))
		}
	}
	fault := errors.New("a fault")
	if f, err = l.fs.Open(l.closedFile(1), false); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if err := l.Repair(func(string) error { return fault }); !errors.Is(err, fault) {
		t.Errorf("got %v, want the error of moving the file", err)
	}
}

// Bytes that a failed attempt left after the end do not become part of the next one, even if they are longer.
func TestAppendCutsWhatIsBehind(t *testing.T) {
	t.Parallel()
	fs := vfstest.New()
	for _, text := range []string{"the first attempt, which is longer", "second", "third"} {
		n, err := Append(fs, "f", 0, [][]byte{[]byte(text)})
		data, readErr := fs.ReadFile("f")
		if err := errors.Join(err, readErr); err != nil || string(data) != text+"\n" || n != int64(len(data)) {
			t.Errorf("got %q, %d bytes, %v, want %q", data, n, err, text)
		}
	}
}

// Blank lines do not count as damage.
func TestRepairLeavesBlankLines(t *testing.T) {
	t.Parallel()
	l := openLog(t, vfstest.New(), "", nil)
	lines := textOf(line(1), "", line(2))
	if err := l.Append(lines); err != nil {
		t.Fatal(err)
	}
	l.Publish(lines)
	if err := l.Repair(func(name string) error { t.Errorf("%s was moved", name); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := l.find(2); got != line(2) {
		t.Errorf("got %q, want %q", got, line(2))
	}
}

func TestLogReportsFaults(t *testing.T) {
	t.Parallel()
	l := openLog(t, vfstest.New(), "current.jsonl", nil)
	l.add(upTo(3)...)
	l.fs.Fail = func(_ int, op vfstest.Op) (error, bool) { return vfstest.ErrInjected, false }
	_, synced := l.Sync()
	appended := l.Append(textOf("{}"))
	for name, err := range map[string]error{"Sync": synced, "Append": appended, "Rotate": l.Rotate()} {
		if !errors.Is(err, vfstest.ErrInjected) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	l.fs.Fail = nil
	l.add(3)
	if got := l.ids(); !same(got, upTo(4)) {
		t.Errorf("afterwards: got %v", got)
	}
}
