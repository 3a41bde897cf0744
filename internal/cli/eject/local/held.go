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

// A HeldFile is a file of a case: a given one, or one that its program creates or fetches.
type HeldFile struct {
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Path      string `json:"path,omitempty"` // path of its bytes below the program's directory

	data *bytes.Buffer // bytes of a file that the run creates
	// sum is the SHA-256 of the bytes that the recorded call wrote to it, in hexadecimal; "" for other files.
	sum string
}

// hold adds a file that the run creates.
func (r *run) hold(id string, f HeldFile) io.ReadWriteCloser {
	f.data = &bytes.Buffer{}
	if r.held == nil {
		r.held = map[string]HeldFile{}
	}
	r.held[id] = f
	return written{f.data}
}

// open opens the file. dir is the program's directory.
func (f HeldFile) open(dir string) (io.ReadCloser, error) {
	if f.data != nil {
		return io.NopCloser(bytes.NewReader(f.data.Bytes())), nil
	}
	return os.Open(filepath.Join(dir, filepath.FromSlash(f.Path)))
}

// madeOther returns the id of a file in the value to which the run wrote other bytes than the recorded call did, or "".
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

// written is a file that a run writes.
type written struct{ *bytes.Buffer }

func (written) Read([]byte) (int, error) { return 0, errors.New("a file that is written is not read") }

func (written) Close() error { return nil }

// readOnly is a file that a run reads.
type readOnly struct{ io.ReadCloser }

func (readOnly) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
