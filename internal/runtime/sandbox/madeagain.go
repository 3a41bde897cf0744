package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// maxAgain bounds the bytes of files that a run on recorded effects makes and may read.
const maxAgain = 16 << 20

// madeAgain is a file that a run on recorded effects makes or fetches. Of it the digest is kept, and as long as they are few its bytes, until the run ends.
type madeAgain struct {
	file agent.File // its sum apart
	sum  hash.Hash
	data []byte
	lost bool   // data is not all of it
	was  string // the digest of a fetched one whose bytes nobody has recorded
	of   *streams
}

// makeAgain begins a file.
func (s *streams) makeAgain(f agent.File) *madeAgain {
	if s.again == nil {
		s.room = maxAgain
	}
	m := &madeAgain{file: f, sum: sha256.New(), of: s}
	s.again = append(s.again, m)
	return m
}

func (m *madeAgain) Write(p []byte) (int, error) {
	m.file.Bytes += int64(len(p))
	if m.lost = m.lost || len(p) > m.of.room; m.lost {
		m.of.room += len(m.data)
		m.data = nil
	} else {
		m.of.room -= len(p)
		m.data = append(m.data, p...)
	}
	return m.sum.Write(p)
}

func (m *madeAgain) Close() error { return nil }

func (m *madeAgain) Discard() {}

func (m *madeAgain) ID() string { return m.file.ID }

func (m *madeAgain) End() agent.File {
	f := m.file
	f.SHA256 = hex.EncodeToString(m.sum.Sum(nil))
	return f
}

// makes reports whether the run makes the file.
func (s *streams) makes(id string) bool {
	for _, m := range s.made {
		if m.ID() == id {
			return true
		}
	}
	return false
}

// reread opens a file that the run has made or fetched on recorded effects; nil for any other. The failure says that its bytes are not at hand.
func (x *exchange) reread(ctx context.Context, id string) (*OpenFile, *Failure) {
	for _, m := range x.files.again {
		switch {
		case m.file.ID != id:
		case m.was != "":
			return x.sameFile(ctx, id, m.was)
		case m.lost:
			return nil, diverged("the program reads a file of its own that is too large to be made again")
		default:
			return &OpenFile{File: m.End(), ReadSeekCloser: inMemory{bytes.NewReader(m.data)}}, nil
		}
	}
	return nil, nil
}

// inMemory is a file whose bytes are at hand.
type inMemory struct{ io.ReadSeeker }

func (inMemory) Close() error { return nil }
