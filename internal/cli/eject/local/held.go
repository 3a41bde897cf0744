package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// A HeldFile is a file of a case: one that it was given, or one that its program makes or fetches.
type HeldFile struct {
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Path      string `json:"path,omitempty"` // of its bytes, below the directory of the program

	data *bytes.Buffer // of one that the run makes
	sum  string        // SHA-256 of the bytes that the recorded call gave to it, hexadecimal; "" for others
}

// hold adds a file of the run.
func (r *run) hold(id string, f HeldFile) io.ReadWriteCloser {
	f.data = &bytes.Buffer{}
	if r.held == nil {
		r.held = map[string]HeldFile{}
	}
	r.held[id] = f
	return written{f.data}
}

// open opens the file of a program in that directory.
func (f HeldFile) open(dir string) (io.ReadCloser, error) {
	if f.data != nil {
		return io.NopCloser(bytes.NewReader(f.data.Bytes())), nil
	}
	return os.Open(filepath.Join(dir, filepath.FromSlash(f.Path)))
}

// madeOther returns the id of a file in the value that the run made with other bytes than the recorded call did; "" for none.
func (r *run) madeOther(value []byte) string {
	for _, id := range slices.Sorted(maps.Keys(r.held)) {
		f := r.held[id]
		if f.data == nil || f.sum == "" || !bytes.Contains(value, []byte(strconv.Quote(id))) {
			continue
		}
		if sum := sha256.Sum256(f.data.Bytes()); hex.EncodeToString(sum[:]) != f.sum {
			return id
		}
	}
	return ""
}

// written is a file that a run makes.
type written struct{ *bytes.Buffer }

func (written) Read([]byte) (int, error) { return 0, errors.New("a file that is written is not read") }

func (written) Close() error { return nil }

// readOnly is a file that is read.
type readOnly struct{ io.ReadCloser }

func (readOnly) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
