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

// A Reader reads a file from any offset. It is not safe for concurrent use, and must be closed. It hashes the bytes as
// they are read in order: a reader of the whole file gets the stored bytes, or store.ErrDamaged in place of the last
// ones. A read out of order, as for a range, first verifies the whole file.
type Reader struct {
	agent.File
	ctx    context.Context // of the request or run
	from   store.FileReader
	sound  *soundFiles
	key    string // of the file in sound
	report func(agent.File)
	at     int64
	sum    hash.Hash // over the first summed bytes; nil once the whole file is verified
	summed int64
	err    error // the first read error
}

// NewReader returns a Reader for a file with that description, which reads its bytes from from. Close closes from.
func NewReader(ctx context.Context, f agent.File, from store.FileReader) *Reader {
	return &Reader{File: f, ctx: ctx, from: from, sound: &soundFiles{}, sum: sha256.New()}
}

// Err returns the first read error. It returns nil after io.EOF.
func (r *Reader) Err() error { return r.err }

// Close closes the underlying file.
func (r *Reader) Close() error { return r.from.Close() }

// Seek implements io.Seeker.
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

// Read implements io.Reader. It returns store.ErrDamaged if the bytes differ from those stored.
func (r *Reader) Read(p []byte) (n int, err error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	p = p[:min(int64(len(p)), max(r.Bytes-r.at, 0))]
	if len(p) == 0 {
		return 0, io.EOF
	}
	// A digest of bytes read in order says nothing about a read elsewhere.
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

// piece fills p from the current offset and hashes it if it continues the hashed prefix.
func (r *Reader) piece(p []byte) error {
	if err := readAll(r.from, p, r.at); err != nil {
		return r.damaged(err)
	}
	r.at += int64(len(p))
	if r.sum == nil {
		return nil
	}
	_, _ = r.sum.Write(p) // a hash never returns an error
	if r.summed = r.at; r.summed < r.Bytes {
		return nil
	}
	return r.compare(r.sum)
}

// Verify compares the whole file with its digest, unless this version of it was verified before. Later reads are not
// checked again.
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
			_, _ = sum.Write(buf) // a hash never returns an error
		}
		err := r.compare(sum)
		// The file must not have changed while it was read, or the result would be remembered for the wrong version.
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

// version returns the store's version of the file, or "" if the store has none.
func (r *Reader) version() string {
	if v, ok := r.from.(store.Versioned); ok {
		return v.Version()
	}
	return ""
}

// compare checks a digest of the whole file. A file without a known digest passes.
func (r *Reader) compare(sum hash.Hash) error {
	if r.SHA256 == "" || hex.EncodeToString(sum.Sum(nil)) == r.SHA256 {
		return nil
	}
	return r.damaged(errChanged)
}

var errChanged = errors.New("its bytes differ from those that were stored")

// damaged reports a file with other or fewer bytes than stored, and returns store.ErrDamaged. Any other error it
// returns unchanged.
func (r *Reader) damaged(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errChanged) {
		return err
	}
	if r.report != nil {
		r.report(r.File)
	}
	return fmt.Errorf("%w: file %s", store.ErrDamaged, r.ID)
}

// readAll fills p, or returns an error.
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

// soundFiles remembers which version of each file was verified. The zero value is ready.
type soundFiles struct {
	mu      sync.Mutex
	known   map[string]string        // verified version by file; guarded by mu, as is running
	running map[string]chan struct{} // verifications in progress; closed at their end
}

// maxSound bounds the number of remembered files.
const maxSound = 4096

// check calls compare unless that version of the file was already verified; an unknown version "" is always compared.
// At most one verification of a file runs at a time.
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
