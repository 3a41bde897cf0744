package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// bytesOf is a store.FileReader with a version, which counts the bytes read.
type bytesOf struct {
	*bytes.Reader
	version string
	read    *atomic.Int64
}

func (b bytesOf) ReadAt(p []byte, at int64) (int, error) {
	n, err := b.Reader.ReadAt(p, at)
	b.read.Add(int64(n))
	return n, err
}
func (b bytesOf) Version() string { return b.version }
func (b bytesOf) Close() error    { return nil }

// stored returns the description of a file with that text.
func stored(text string) agent.File {
	return agent.File{ID: "file_1", Bytes: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}
}

func readerOf(f agent.File, has string, sound *soundFiles, read *atomic.Int64, report func(agent.File)) *Reader {
	r := NewReader(context.Background(), f, bytesOf{bytes.NewReader([]byte(has)), has, read})
	r.sound, r.report = sound, report
	return r
}

// A file can be read from the start, from any offset, and again.
func TestReader(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 50_000)
	var read atomic.Int64
	sound := &soundFiles{}
	if err := iotest.TestReader(readerOf(stored(text), text, sound, &read, nil), []byte(text)); err != nil {
		t.Error(err)
	}
	if err := iotest.TestReader(readerOf(stored(""), "", sound, &read, nil), nil); err != nil {
		t.Error(err)
	}
	if err := iotest.TestReader(readerOf(stored("longer"), "longer than it was", sound, &read, nil),
		[]byte("longer")); err != nil {
		t.Errorf("what was added behind it: %v", err)
	}
}

// Damage is reported before the last bytes are returned, and before any bytes of a range. It is reported once per
// Reader.
func TestReaderOfDamage(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 50_000)
	for name, has := range map[string]string{"the first byte": "x" + text[1:],
		"the last byte": text[:len(text)-1] + "x", "shorter": text[:len(text)-1], "empty": "",
		"a hole": text[:1000] + strings.Repeat("\x00", 4096) + text[5096:]} {
		var read atomic.Int64
		reported := 0
		report := func(f agent.File) { reported++ }
		r := readerOf(stored(text), has, &soundFiles{}, &read, report)
		got, err := io.ReadAll(r)
		if !errors.Is(err, store.ErrDamaged) || len(got) >= len(text) || r.Err() == nil {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s, read on: %d, %v", name, n, err)
		}
		r = readerOf(stored(text), has, &soundFiles{}, &read, report)
		if _, err := r.Seek(-10, io.SeekEnd); err != nil {
			t.Fatal(err)
		}
		if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s, a range: %d, %v", name, n, err)
		}
		if reported != 2 {
			t.Errorf("%s: reported %d times", name, reported)
		}
	}
}

// A file is verified once while it is unchanged, and again when it changes. Concurrent readers wait for the first
// verification.
func TestVerifyOnce(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 50_000)
	var read atomic.Int64
	sound := &soundFiles{}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := readerOf(stored(text), text, sound, &read, nil).Verify(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := read.Load(); n != int64(len(text)) {
		t.Errorf("%d bytes were read of a file of %d", n, len(text))
	}
	other := "x" + text[1:]
	for range 2 {
		if err := readerOf(stored(text), other, sound, &read, nil).Verify(); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("of another version: %v", err)
		}
	}
	if n := read.Load(); n != 3*int64(len(text)) {
		t.Errorf("%d bytes were read, want the file three times", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := NewReader(ctx, stored(text), bytesOf{bytes.NewReader([]byte(text)), "", &read})
	if err := r.Verify(); !errors.Is(err, context.Canceled) {
		t.Errorf("of a request that has ended: %v", err)
	}
	for i := range 2 * maxSound {
		if err := sound.check(t.Context(), fmt.Sprint(i), "v", func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(sound.known); n > maxSound {
		t.Errorf("%d files are remembered", n)
	}
}
