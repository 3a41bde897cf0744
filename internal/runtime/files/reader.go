package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Reader reads a file from any place. It belongs to one goroutine, and must be closed. Whoever reads to the end gets the bytes that were stored, or store.ErrDamaged in
// the place of the last ones: their digest is taken as they are read. A read that does not follow those before it, as for a range, has the whole file compared first.
type Reader struct {
	agent.File
	ctx    context.Context // of the request or the run that it belongs to
	from   store.FileReader
	sound  *soundFiles
	key    string // of the file among those
	report func(agent.File)
	at     int64
	sum    hash.Hash // of the first summed bytes; nil once the whole was compared
	summed int64
	err    error // the first one
}

// NewReader returns a Reader of what is known of a file and of its bytes.
func NewReader(ctx context.Context, f agent.File, from store.FileReader) *Reader {
	return &Reader{File: f, ctx: ctx, from: from, sound: &soundFiles{}, sum: sha256.New()}
}

// Err is the first error of reading; nil for none, or the end.
func (r *Reader) Err() error { return r.err }

// Close closes the file.
func (r *Reader) Close() error { return r.from.Close() }

// Seek is part of io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.Bytes
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of a file")
	}
	r.at = offset
	return offset, nil
}

func (r *Reader) Read(p []byte) (n int, err error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	p = p[:min(int64(len(p)), max(r.Bytes-r.at, 0))]
	if len(p) == 0 {
		return 0, io.EOF
	}
	if r.sum != nil && r.at != r.summed {
		r.err = r.Verify()
	}
	if r.err == nil {
		r.err = r.piece(p)
	}
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// piece reads the next bytes, all of them.
func (r *Reader) piece(p []byte) error {
	if err := readAll(r.from, p, r.at); err != nil {
		return r.damaged(err)
	}
	r.at += int64(len(p))
	if r.sum == nil {
		return nil
	}
	_, _ = r.sum.Write(p) // a hash takes everything
	if r.summed = r.at; r.summed < r.Bytes {
		return nil
	}
	return r.compare(r.sum)
}

// Verify compares the whole file with its digest, unless it is known to be as it was then. After that it is read without another look.
func (r *Reader) Verify() error {
	version := r.version()
	err := r.sound.check(r.ctx, r.key, version, func() error {
		sum := sha256.New()
		buf := make([]byte, 256<<10)
		for at := int64(0); at < r.Bytes; at += int64(len(buf)) {
			if err := context.Cause(r.ctx); err != nil {
				return err
			}
			buf = buf[:min(int64(len(buf)), r.Bytes-at)]
			if err := readAll(r.from, buf, at); err != nil {
				return r.damaged(err)
			}
			_, _ = sum.Write(buf) // a hash takes everything
		}
		err := r.compare(sum)
		if err == nil && r.version() != version {
			err = r.damaged(errChanged)
		}
		return err
	})
	if err == nil {
		r.sum = nil
	}
	return err
}

func (r *Reader) version() string {
	if v, ok := r.from.(store.Versioned); ok {
		return v.Version()
	}
	return ""
}

func (r *Reader) compare(sum hash.Hash) error {
	if r.SHA256 == "" || hex.EncodeToString(sum.Sum(nil)) == r.SHA256 {
		return nil
	}
	return r.damaged(errChanged)
}

var errChanged = errors.New("it has other bytes than were stored")

// damaged reports a file that has other bytes, or fewer, than were stored. Any other error of reading it returns as it is.
func (r *Reader) damaged(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errChanged) {
		return err
	}
	if r.report != nil {
		r.report(r.File)
	}
	return fmt.Errorf("%w: file %s", store.ErrDamaged, r.ID)
}

// readAll fills p.
func readAll(from io.ReaderAt, p []byte, at int64) error {
	n, err := from.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// soundFiles are files that were compared with their digests, by the version that they had then. The zero value is ready.
type soundFiles struct {
	mu      sync.Mutex
	known   map[string]string        // versions by file; guarded by mu, as the next
	running map[string]chan struct{} // comparisons under way, closed at their end
}

// maxSound bounds how many are remembered.
const maxSound = 4096

// check calls compare unless the file has been compared in that version, "" for one that is not known. One comparison of a file runs at a time.
func (s *soundFiles) check(ctx context.Context, file, version string, compare func() error) error {
	for {
		s.mu.Lock()
		if version != "" && s.known[file] == version {
			s.mu.Unlock()
			return nil
		}
		other := s.running[file]
		if other == nil {
			break
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if s.known == nil {
		s.known, s.running = map[string]string{}, map[string]chan struct{}{}
	}
	done := make(chan struct{})
	s.running[file] = done
	s.mu.Unlock()
	err := compare()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, file)
	close(done)
	if err == nil && version != "" {
		if len(s.known) >= maxSound {
			clear(s.known)
		}
		s.known[file] = version
	}
	return err
}
