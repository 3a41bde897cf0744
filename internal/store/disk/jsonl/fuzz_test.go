package jsonl

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// FuzzLines walks any bytes in both directions. Both walks visit the same lines, at the right offsets.
func FuzzLines(f *testing.F) {
	f.Add([]byte("one\ntwo\n\nthree\n"))
	f.Add([]byte("\n\n"))
	f.Add(bytes.Repeat([]byte("long "), 20_000))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		whole := int64(bytes.LastIndexByte(data, '\n') + 1)
		var forward, backward []string
		if _, err := Forward(t.Context(), r, 0, whole, func(line []byte) (bool,
			error) {
			forward = append(forward, string(line))
			return false, nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := Backward(t.Context(), r, whole, func(line []byte, off int64) (bool, error) {
			if at, err := LineAt(r, off, whole); err != nil || !bytes.Equal(at, line) {
				t.Fatalf("at %d: %q, %v, want %q", off, at, err, line)
			}
			backward = append(backward, string(line))
			return false, nil
		}); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(backward)
		if !slices.Equal(forward, backward) {
			t.Fatalf("forward %q, backward %q", forward, backward)
		}
		if off, err := Bisect(r, whole, func(line []byte) (bool, bool) {
			return len(line) > 3,
				len(line) > 0
		}); err != nil || off < 0 || off > whole {
			t.Fatalf("bisect: %d of %d, %v", off, whole, err)
		}
	})
}

// FuzzMember reads a member from any line. If the line is an object of strings, the result must equal that of
// encoding/json.
func FuzzMember(f *testing.F) {
	f.Add([]byte(`{"id":"a"}`), "id")
	f.Add([]byte(`{"id":"a\"b"}`), "id")
	f.Fuzz(func(t *testing.T, data []byte, value string) {
		_ = Member(data, "id") // must not panic
		line, err := json.Marshal(map[string]string{"id": value})
		want := map[string]string{}
		if err != nil || json.Unmarshal(line, &want) != nil {
			t.Fatal(err)
		}
		if got := Member(line, "id"); got != want["id"] {
			t.Fatalf("%s: got %q, want %q", line, got, want["id"])
		}
	})
}

// FuzzIndex searches index files of any bytes, and finds every offset in those that encodeIndex makes.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(indexMagic+"0123456789abcdef"), uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, data []byte, a, b uint64) {
		_, _ = searchIndex(bytes.NewReader(data), int64(len(data)), a) // must not panic
		index := encodeIndex(map[uint64][]int64{a: {5, 1}, b + 1: {7}})
		got, ok := searchIndex(bytes.NewReader(index), int64(len(index)), a)
		want := []int64{1, 5}
		if a == b+1 {
			want = []int64{7}
		}
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("got %v, %v, want %v", got, ok, want)
		}
	})
}
