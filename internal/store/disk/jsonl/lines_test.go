package jsonl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// texts are files whose lines cross the chunks in which they are read.
func texts() map[string][]string {
	long := strings.Repeat("x", 100_000)
	numbered := []string{}
	for i := range 5000 {
		numbered = append(numbered, fmt.Sprintf("line %04d %s", i, strings.Repeat("y", i%60)))
	}
	return map[string][]string{"none": nil, "one": {"one"}, "empty lines": {"", "a", "", "", "b"}, "long": {"a", long, "b", long + long, "c"}, "many": numbered}
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
		if done, err := Forward(t.Context(), f, 0, f.Size(), visit); done || err != nil || !slices.Equal(got, append([]string{}, lines...)) {
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
		if done, err := walk(t.Context(), func([]byte) (bool, error) { n++; return n == 3, nil }); !done || err != nil || n != 3 {
			t.Errorf("%s: got done %v, %v after %d lines, want true after 3", name, done, err, n)
		}
		if _, err := walk(t.Context(), func([]byte) (bool, error) { return false, fault }); !errors.Is(err, fault) {
			t.Errorf("%s: got %v, want the visitor's error", name, err)
		}
		if _, err := walk(canceled, func([]byte) (bool, error) { return false, nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that the context has ended", name, err)
		}
	}
}

func TestWalksStayWithinTheirBounds(t *testing.T) {
	t.Parallel()
	f := strings.NewReader("one\ntwo\nthree\nfo")
	got := []string{}
	if _, err := Forward(t.Context(), f, 4, 14, func(line []byte) (bool, error) { got = append(got, string(line)); return false, nil }); err != nil || fmt.Sprint(got) != "[two three]" {
		t.Errorf("forward: got %v, %v, want [two three]", got, err)
	}
	got = nil
	if _, err := Backward(t.Context(), f, 8, func(line []byte, _ int64) (bool, error) { got = append(got, string(line)); return false, nil }); err != nil || fmt.Sprint(got) != "[two one]" {
		t.Errorf("backward: got %v, %v, want [two one]", got, err)
	}
	got = nil
	if _, err := Forward(t.Context(), f, 0, f.Size(), func(line []byte) (bool, error) { got = append(got, string(line)); return false, nil }); err != nil || fmt.Sprint(got) != "[one two three]" {
		t.Errorf("a torn last line: got %v, %v, want that it is left out", got, err)
	}
}

func TestBisectFindsEachLine(t *testing.T) {
	t.Parallel()
	for _, unreadable := range []int{0, 3, 7} { // every so many lines are damaged
		lines := texts()["many"][:500]
		offsets, off := make([]int64, len(lines)), int64(0)
		for i := range lines {
			if unreadable > 0 && i%unreadable == 1 {
				lines[i] = strings.Repeat("?", len(lines[i]))
			}
			offsets[i] = off
			off += int64(len(lines[i])) + 1
		}
		f := file(lines)
		for i, line := range lines {
			if strings.HasPrefix(line, "?") {
				continue
			}
			got, err := Bisect(f, f.Size(), func(l []byte) (bool, bool) {
				return string(l) >= line && l[0] != '?', l[0] != '?'
			})
			behind, _ := LineAt(f, got, f.Size())
			if err != nil || got > offsets[i] || unreadable == 0 && string(behind) != line {
				t.Fatalf("line %d, unreadable %d: got %d, %v, want at most %d", i, unreadable, got, err, offsets[i])
			}
		}
		if got, err := Bisect(f, f.Size(), func(l []byte) (bool, bool) { return false, l[0] != '?' }); err != nil || got != f.Size() && unreadable == 0 {
			t.Errorf("behind the end: got %d, %v, want %d", got, err, f.Size())
		}
	}
	if got, err := Bisect(strings.NewReader(""), 0, func([]byte) (bool, bool) { return true, true }); got != 0 || err != nil {
		t.Errorf("empty: got %d, %v", got, err)
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
