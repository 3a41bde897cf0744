package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
)

// Events with arbitrary bytes are read or rejected. Whatever a server sends arrives whole.
func FuzzEventStream(f *testing.F) {
	f.Add([]byte("retry: 2000\n\n: ping\n\nid: call_1\nevent: call.finished\ndata: {\"a\":1}\n\n"))
	f.Add([]byte("data: a\ndata: b\r\n\r\nid\ndata\n\n"))
	f.Add([]byte("id: x\x00\ndata:y\n\nretry: 99999999999999999999\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := &eventReader{r: newSmallReader(raw), heard: func() {}}
		size := 0
		for {
			e, err := r.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("%q: %v", raw, err)
				}
				break
			}
			size += len(e.Data)
		}
		if size > len(raw) || r.retry > retryAtMost {
			t.Errorf("%q: %d bytes of data, retry %s", raw, size, r.retry)
		}
	})
}

func TestEventStreamIsBounded(t *testing.T) {
	t.Parallel()
	r := &eventReader{r: newSmallReader(bytes.Repeat([]byte("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"),
		maxEvent/40)), heard: func() {}}
	if _, err := r.next(); !errors.Is(err, errEventTooLong) {
		t.Errorf("got %v, want %v", err, errEventTooLong)
	}
	r = &eventReader{r: newSmallReader([]byte("id: 7\nevent: x\ndata: a\ndata: b\n\n")), heard: func() {}}
	if e, err := r.next(); err != nil || e.ID != "7" || e.Type != "x" || string(e.Data) != "a\nb" {
		t.Errorf("got %+v, %v", e, err)
	}
}

func newSmallReader(raw []byte) *bufio.Reader { return bufio.NewReaderSize(bytes.NewReader(raw), 16) }
