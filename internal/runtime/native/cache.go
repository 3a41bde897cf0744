package native

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/seal"
)

// A cached executable is the file exe/<digest>, where the digest covers everything that it is made of. The linker's
// output is followed by the data about the program, the length of that data, and the seal of all bytes before, which is
// bound to the digest. The system ignores what follows the linker's output. For a program that the compiler refused,
// the refusal takes the place of the linker's output, under a seal of another kind.
const (
	exeDir     = "exe"
	exeKind    = "executable"
	refuseKind = "refusal"
	lengthOf   = 8  // bytes of the length
	sealOf     = 64 // bytes of the seal
)

func exeName(digest string) string { return path.Join(exeDir, digest) }

// cached returns the executable from the cache and marks it as used, or nil if there is none. For a program that the
// compiler refused, the error is a *BuildError with the same Refusal. A file without a valid seal is removed.
func (b *Builder) cached(digest string) (*Executable, error) {
	name := exeName(digest)
	x, err := b.verified(name, digest)
	if _, refused := errors.AsType[*BuildError](err); err == nil || refused {
		return x, err
	}
	b.mu.Lock()
	delete(b.seen, digest)
	b.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nil, b.at.RemoveAll(name)
}

// adopt stores the output of a build. The tools own the directory, so nothing in it is trusted before it has been
// checked.
func (b *Builder) adopt(from, digest string, about []byte) error {
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > buildFile {
		return errors.Join(errors.New("the tools left no executable"), err)
	}
	return b.keep(exeKind, io.LimitReader(in, buildFile), digest, about)
}

// refuse stores the compiler's refusal of a program.
func (b *Builder) refuse(fault *BuildError, digest string, about []byte) error {
	return b.keep(refuseKind, strings.NewReader(fault.Refusal), digest, about)
}

// keep stores made, the output for a program, with the data about it and the seal. It renames a complete file into
// place, so the cache holds only whole files.
func (b *Builder) keep(kind string, made io.Reader, digest string, about []byte) error {
	fresh := path.Join(b.work, "new-"+digest) // one build of a digest at a time uses this name
	out, err := b.at.Open(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	h := sha256.New()
	size, err := io.Copy(io.MultiWriter(out, h), io.MultiReader(made, bytes.NewReader(withAbout(about))))
	if err == nil {
		_, err = io.WriteString(out, b.opts.Key.Seal(kind, digest, size, [sha256.Size]byte(h.Sum(nil))))
	}
	if err := errors.Join(err, out.Chmod(0o555), out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := b.at.Rename(fresh, exeName(digest)); err != nil {
		return err
	}
	b.bytes.Add(size + sealOf)
	return nil
}

// prune removes the least recently used executables if together they exceed MaxBytes, until they take a tenth less than
// that, so most builds need not look at others. It never removes keep. An empty keep makes it measure the cache in any
// case.
func (b *Builder) prune(keep string) error {
	b.pruning.Lock()
	defer b.pruning.Unlock()
	if keep != "" && b.bytes.Load() <= b.opts.MaxBytes {
		return nil
	}
	files, total, err := b.executables()
	if err != nil {
		return err
	}
	most := b.opts.MaxBytes
	if total > most {
		most -= most / 10
	}
	slices.SortFunc(files, func(a, b exeFile) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	for _, f := range files {
		if total <= most {
			break
		}
		if f.name == keep {
			continue
		}
		if err := b.at.RemoveAll(f.name); err != nil {
			return err
		}
		total -= f.size
	}
	b.bytes.Store(total)
	return nil
}

// An exeFile is a file of the cache.
type exeFile struct {
	name string
	size int64
	used time.Time
}

// executables lists the cache, with the sum of the sizes in bytes.
func (b *Builder) executables() (files []exeFile, total int64, err error) {
	names, err := b.at.List(exeDir)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		name = path.Join(exeDir, name)
		info, err := b.at.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		// Anything but a file has no time and is removed first.
		files = append(files, exeFile{name, info.Size, info.ModTime})
		total += info.Size
	}
	return files, total, nil
}

// Drop removes the executables for whose about argument match returns true, once the builds in progress have ended. It
// also removes files that cannot be read.
func (b *Builder) Drop(ctx context.Context, match func(about []byte) bool) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	b.pruning.Lock()
	defer b.pruning.Unlock()
	files, total, err := b.executables()
	if err != nil {
		return err
	}
	for _, file := range files {
		about, err := b.about(file)
		if err != nil || match(about) { // an unreadable file belongs to nobody
			if err := b.at.RemoveAll(file.name); err != nil {
				return err
			}
			total -= file.size
		}
	}
	b.bytes.Store(total)
	return nil
}

// about reads the data about the program of an executable. It does not check the seal.
func (b *Builder) about(file exeFile) ([]byte, error) {
	f, err := b.at.Open(file.name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAbout(f, file.size-sealOf)
}

// settle waits for the builds in progress.
func (b *Builder) settle(ctx context.Context) error {
	b.mu.Lock()
	under := slices.Collect(maps.Values(b.making))
	b.mu.Unlock()
	for _, m := range under {
		select {
		case <-m.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

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
