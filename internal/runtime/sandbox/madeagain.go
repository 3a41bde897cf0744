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

// maxAgain bounds the bytes that a replay keeps of the files that it makes, so that it can read them.
const maxAgain = 16 << 20

// madeAgain is a file that a replay makes or fetches. It implements NewFile. Its digest is kept until the run ends, and
// its bytes as well while all files fit maxAgain.
type madeAgain struct {
	file agent.File // without SHA256
	sum  hash.Hash
	data []byte
	lost bool   // the bytes did not fit; data is empty
	was  string // the recorded digest of a fetched file whose bytes the journal lacks
	of   *streams
}

// makeAgain creates a file of a replay.
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

// makes reports whether the run has made the file.
func (s *streams) makes(id string) bool {
	for _, m := range s.made {
		if m.ID() == id {
			return true
		}
	}
	return false
}

// reread opens a file that a replay has made or fetched. It returns nil for any other file, and a Failure if the bytes
// are no longer available.
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

// inMemory gives bytes in memory a Close method.
type inMemory struct{ io.ReadSeeker }

func (inMemory) Close() error { return nil }
