package rig

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A Buffer collects the output of a process. It is safe for concurrent use.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns everything written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// An Output is a file that processes write to. In contrast to a pipe, a line is visible as soon as it is written: a
// test that has a daemon's reply sees everything that the daemon logged before it. An Output is safe for concurrent
// use.
type Output struct{ file *os.File }

// NewOutput returns an empty Output. Its file is removed at the end of the test.
func NewOutput(t *testing.T) *Output {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "output"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // nothing writes any more
	return &Output{file}
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) { return o.file.Write(p) }

// String returns everything written so far.
func (o *Output) String() string {
	text, err := os.ReadFile(o.file.Name())
	if err != nil {
		return "what was written cannot be read: " + err.Error()
	}
	return string(text)
}
