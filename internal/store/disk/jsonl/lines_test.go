package jsonl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// texts returns files whose lines cross the boundaries of the chunks in which they are read.
func texts() map[string][]string {
	long := strings.Repeat("x", 100_000)
	numbered := []string{}
	for i := range 5000 {
		numbered = append(numbered, fmt.Sprintf("line %04d %s", i, strings.Repeat("y", i%60)))
	}
	return map[string][]string{"none": nil, "one": {"one"}, "empty lines": {"", "a", "", "", "b"},
		"long": {"a", long, "b", long + long, "c"}, "many": numbered}
}

func file(lines []string) *strings.Reader {
	if len(lines) == 0 {
		return strings.NewReader("")
	}
	return strings.NewReader(strings.Join(lines, "\n") + "\n")
}

func TestForwardAndBackwardVisitEachLine(t *testing.T) {
	t.Parallel()
	for name, lines := range texts() {
		f := file(lines)
		got := []string{}
		visit := func(line []byte) (bool, error) { got = append(got, string(line)); return false, nil }
		if done, err := Forward(t.Context(), f, 0, f.Size(),
			visit); done || err != nil || !slices.Equal(got, append([]string{}, lines...)) {
			t.Errorf("%s forward: got %d lines, done %v, %v, want %d", name, len(got), done, err, len(lines))
		}
		got = []string{}
		offsets := []int64{}
		_, err := Backward(t.Context(), f, f.Size(), func(line []byte, off int64) (bool, error) {
			offsets = append(offsets, off)
			return visit(line)
		})
		slices.Reverse(got)
		if err != nil || !slices.Equal(got, append([]string{}, lines...)) {
			t.Errorf("%s backward: got %d lines, %v, want %d", name, len(got), err, len(lines))
		}
		slices.Reverse(offsets)
		for i, off := range offsets {
			if line, err := LineAt(f, off, f.Size()); err != nil || string(line) != lines[i] {
				t.Errorf("%s: at %d: got a line of %d bytes, %v, want line %d", name, off, len(line), err, i)
			}
		}
	}
}

func TestWalksEndEarly(t *testing.T) {
	t.Parallel()
	f := file(texts()["many"])
	fault := errors.New("a fault")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, walk := range map[string]func(context.Context, func([]byte) (bool, error)) (bool, error){
		"forward": func(ctx context.Context, visit func([]byte) (bool, error)) (bool, error) {
			return Forward(ctx, f, 0, f.Size(), visit)
		},
		"backward": func(ctx context.Context, visit func([]byte) (bool, error)) (bool, error) {
			return Backward(ctx, f, f.Size(), func(line []byte, _ int64) (bool, error) { return visit(line) })
		},
	} {
		n := 0
		if done, err := walk(t.Context(), func([]byte) (bool, error) {
			n++
			return n == 3,
				nil
		}); !done || err != nil || n != 3 {
			t.Errorf("%s: got done %v, %v after %d lines, want true after 3", name, done, err, n)
		}
		if _, err := walk(t.Context(), func([]byte) (bool, error) { return false, fault }); !errors.Is(err, fault) {
			t.Errorf("%s: got %v, want the visitor's error", name, err)
		}
		if _, err := walk(canceled, func([]byte) (bool, error) {
			return false,
				nil
		}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that the context has ended", name, err)
		}
	}
}

func TestWalksStayWithinTheirBounds(t *testing.T) {
	t.Parallel()
	f := strings.NewReader("one\ntwo\nthree\nfo")
	got := []string{}
	if _, err := Forward(t.Context(), f, 4, 14, func(line []byte) (bool,
		error) {
		got = append(got, string(line))
		return false, nil
	}); err != nil || fmt.Sprint(got) != "[two three]" {
		t.Errorf("forward: got %v, %v, want [two three]", got, err)
	}
	got = nil
	if _, err := Backward(t.Context(), f, 8, func(line []byte, _ int64) (bool,
		error) {
		got = append(got, string(line))
		return false, nil
	}); err != nil || fmt.Sprint(got) != "[two one]" {
		t.Errorf("backward: got %v, %v, want [two one]", got, err)
	}
	got = nil
	if _, err := Forward(t.Context(), f, 0, f.Size(), func(line []byte) (bool,
		error) {
		got = append(got, string(line))
		return false, nil
	}); err != nil || fmt.Sprint(got) != "[one two three]" {
		t.Errorf("a torn last line: got %v, %v, want that it is left out", got, err)
	}
}

// ordered returns n lines, each a number followed by that many bytes. Every damaged-th line is damaged; 0 means none.
func ordered(n, bytes, damaged int) (lines []string, offsets []int64) {
	off := int64(0)
	for i := range n {
		line := fmt.Sprintf("line %04d %s", i, strings.Repeat("y", i%7+bytes))
		if damaged > 0 && i%damaged == 1 {
			line = strings.Repeat("?", len(line))
		}
		lines, offsets = append(lines, line), append(offsets, off)
		off += int64(len(line)) + 1
	}
	return lines, offsets
}

// Bisect finds every line, or the damaged lines just before it.
func TestBisectFindsEachLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, bytes, damaged int }{{500, 30, 0}, {500, 30, 3}, {500, 30, 7}, {40, 9000, 0},
		{40, 9000, 3}, {1, 3, 0}, {2, 3, 0}} {
		lines, offsets := ordered(c.n, c.bytes, c.damaged)
		f := file(lines)
		readable := func(l []byte) bool { return len(l) > 0 && l[0] != '?' }
		for i, line := range lines {
			if !readable([]byte(line)) {
				continue
			}
			got, err := Bisect(f, f.Size(), func(l []byte) (bool, bool) {
				return readable(l) && string(l) >= line,
					readable(l)
			})
			first := i
			for first > 0 && !readable([]byte(lines[first-1])) {
				first--
			}
			if err != nil || got > offsets[i] || got < offsets[first] {
				t.Fatalf("%+v, line %d: got %d, %v, want %d to %d", c, i, got, err, offsets[first], offsets[i])
			}
		}
		if got, err := Bisect(f, f.Size(), func(l []byte) (bool, bool) {
			return false,
				readable(l)
		}); err != nil || got != f.Size() && c.damaged == 0 {
			t.Errorf("%+v, behind the end: got %d, %v, want %d", c, got, err, f.Size())
		}
	}
	if got, err := Bisect(strings.NewReader(""), 0, func([]byte) (bool, bool) {
		return true,
			true
	}); got != 0 || err != nil {
		t.Errorf("empty: got %d, %v", got, err)
	}
}

// failing is a file that can be read up to some offset and fails after it.
type failing struct {
	*strings.Reader
	at int64
}

var errRead = errors.New("a read failed")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= f.at {
		return f.Reader.ReadAt(p, off)
	}
	n, _ := f.Reader.ReadAt(p[:max(0, f.at-off)], off)
	return n, errRead
}

// A failed read is reported as an error and does not make the file look shorter.
func TestWalksReportFailedReads(t *testing.T) {
	t.Parallel()
	lines, _ := ordered(40, 9000, 0)
	f := failing{file(lines), 100_000}
	size := f.Size()
	if _, err := LineAt(f, 99_990, size); !errors.Is(err, errRead) {
		t.Errorf("line: got %v", err)
	}
	if line, err := LineAt(f, 0, size); err != nil || string(line) != lines[0] {
		t.Errorf("a line before it: got %d bytes, %v", len(line), err)
	}
	if _, err := Forward(t.Context(), f, 0, size, func([]byte) (bool, error) {
		return false,
			nil
	}); !errors.Is(err, errRead) {
		t.Errorf("forward: got %v", err)
	}
	if _, err := Backward(t.Context(), f, size, func([]byte, int64) (bool, error) {
		return false,
			nil
	}); !errors.Is(err, errRead) {
		t.Errorf("backward: got %v", err)
	}
	// before the middle of the file, in the line there, and after it
	for _, at := range []int64{100_000, 182_000, 190_000} {
		f.at = at
		if _, err := Bisect(f, size, func([]byte) (bool, bool) { return false, true }); !errors.Is(err, errRead) {
			t.Errorf("bisect, readable up to %d of %d: got %v", at, size, err)
		}
	}
}

func TestMember(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"a":1,"id":"x1","b":2}`:     "x1",
		`{"id":""}`:                   "",
		`{"other":"x"}`:               "",
		`{"id":"with \"quotes\" \\"}`: `with "quotes" \`,
		`{"id":"\u00fc"}`:             "ü",
		`{"id":"not ended`:            "",
		`{"id":"not \ ended`:          "",
		`{"id":7}`:                    "",
	} {
		if got := Member([]byte(line), "id"); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
