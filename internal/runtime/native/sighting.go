package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/seal"
)

// errSeal means that a file was not made by this installation, or was changed since.
var errSeal = errors.New("it has no seal of this installation")

// A sighting records the kind of a file whose seal was verified, and its place at that time. While the place is
// unchanged, the bytes are, too.
type sighting struct {
	place seal.Place
	kind  string
}

// verified opens an executable and marks it as used. It checks the seal unless this Builder has already checked the
// unchanged file.
func (b *Builder) verified(name, digest string) (*Executable, error) {
	f, err := b.at.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	x, err := b.verify(f, digest)
	if err != nil {
		_ = f.Close() // it was only read
		return nil, err
	}
	return x, nil
}

// verify does the work of verified for an open file.
func (b *Builder) verify(f *os.File, digest string) (*Executable, error) {
	place, err := seal.PlaceOf(f)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size() - sealOf
	if size < lengthOf || size > buildFile+maxAbout+lengthOf {
		return nil, errSeal
	}
	b.mu.Lock()
	seen := b.seen[digest]
	b.mu.Unlock()
	if seen.place != place {
		if seen.kind, err = b.checkSeal(f, digest, size); err != nil {
			return nil, err
		}
	}
	about, err := readAbout(f, size)
	if err != nil {
		return nil, err
	}
	now := unix.NsecToTimeval(time.Now().UnixNano())
	if err := unix.Futimes(int(f.Fd()), []unix.Timeval{now, now}); err != nil {
		return nil, err
	}
	if seen.place, err = seal.PlaceOf(f); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.seen[digest] = seen
	b.mu.Unlock()
	if seen.kind == refuseKind {
		return nil, refused(f, size-lengthOf-int64(len(about)))
	}
	return &Executable{f, about}, nil
}

// refused returns the stored refusal, whose text ends at size, as a *BuildError.
func refused(f io.ReaderAt, size int64) error {
	words := make([]byte, min(size, maxWords))
	if _, err := f.ReadAt(words, 0); err != nil {
		return err
	}
	return &BuildError{Step: stepTools, Refusal: string(words), Err: errors.New("refused before")}
}

// checkSeal verifies the seal at offset size, which covers everything before it, and returns its kind.
func (b *Builder) checkSeal(f *os.File, digest string, size int64) (kind string, err error) {
	_, sum, err := seal.SumOf(f, size)
	if err != nil {
		return "", err
	}
	given := make([]byte, sealOf)
	if _, err := f.ReadAt(given, size); err != nil {
		return "", err
	}
	for _, kind := range []string{exeKind, refuseKind} {
		if seal.Fits(string(given), b.opts.Key.Seal(kind, digest, size, sum)) {
			return kind, nil
		}
	}
	return "", errSeal
}

// readAbout reads the data about the program. The seal begins at size.
func readAbout(f io.ReaderAt, size int64) ([]byte, error) {
	var length [lengthOf]byte
	if _, err := f.ReadAt(length[:], size-lengthOf); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxAbout || int64(n) > size-lengthOf {
		return nil, errSeal
	}
	about := make([]byte, n)
	_, err := f.ReadAt(about, size-lengthOf-int64(n))
	return about, err
}

// withAbout returns the data about the program, followed by its length.
func withAbout(about []byte) []byte {
	return binary.LittleEndian.AppendUint64(bytes.Clone(about), uint64(len(about)))
}
