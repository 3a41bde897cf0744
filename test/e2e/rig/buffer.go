package rig

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A Buffer collects what a process writes, from the goroutines that read it. Its methods may be called from several goroutines.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// An Output is a file that processes write to. Unlike what comes by a pipe, a line is there as soon as it was written: a test that
// has a daemon's reply sees all that the daemon logged before it. Its methods may be called from several goroutines.
type Output struct{ file *os.File }

// NewOutput makes an empty one, which is gone after the test.
func NewOutput(t *testing.T) *Output {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "output"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // nothing writes any more
	return &Output{file}
}

func (o *Output) Write(p []byte) (int, error) { return o.file.Write(p) }

// String is all that was written so far.
func (o *Output) String() string {
	text, err := os.ReadFile(o.file.Name())
	if err != nil {
		return "what was written cannot be read: " + err.Error()
	}
	return string(text)
}
