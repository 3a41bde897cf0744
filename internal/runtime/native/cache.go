package native

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/seal"
)

// An executable is exe/<digest>.<seal>: the digest is of all that it was made of, and the seal of its bytes under this digest. Behind what the linker has made stands what is known
// about the program, and the length of that: the system does not look there.
const (
	exeDir   = "exe"
	exeKind  = "executable"
	lengthOf = 8 // bytes of the length
)

func exeName(digest, seal string) string { return path.Join(exeDir, digest+"."+seal) }

// cached returns the executable from the cache and marks it as used; nil where there is none. What has its name, and not its seal, is removed.
func (b *Builder) cached(digest string) (*Executable, error) {
	names, err := b.at.List(exeDir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		given, found := strings.CutPrefix(name, digest+".")
		if !found {
			continue
		}
		name = path.Join(exeDir, name)
		sum, about, err := b.verify(name, digest, given)
		if err == nil {
			return &Executable{Path: b.at.Path(name), Digest: digest, Sum: "sha256:" + hex.EncodeToString(sum[:]), About: about}, nil
		}
		if err := b.at.RemoveAll(name); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

var errSeal = errors.New("it has no seal of this installation")

// verify checks the seal of an executable, and marks it as used.
func (b *Builder) verify(name, digest, given string) (sum [sha256.Size]byte, about []byte, err error) {
	f, err := b.at.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return sum, nil, err
	}
	defer f.Close()
	if _, err := seal.PlaceOf(f); err != nil {
		return sum, nil, err
	}
	size, sum, err := seal.SumOf(f, buildFile+maxAbout+1)
	if err == nil && !seal.Fits(given, b.opts.Key.Seal(exeKind, digest, size, sum)) {
		err = errSeal
	}
	if err == nil {
		about, err = readAbout(f, size)
	}
	if err != nil {
		return sum, nil, err
	}
	now := unix.NsecToTimeval(time.Now().UnixNano())
	return sum, about, unix.Futimes(int(f.Fd()), []unix.Timeval{now, now})
}

// readAbout reads what stands behind an executable.
func readAbout(f *os.File, size int64) ([]byte, error) {
	var length [lengthOf]byte
	if _, err := f.ReadAt(length[:], size-lengthOf); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxAbout {
		return nil, errSeal
	}
	about := make([]byte, n)
	_, err := f.ReadAt(about, size-lengthOf-int64(n))
	return about, err
}

// withAbout returns what stands behind an executable.
func withAbout(about []byte) []byte {
	return binary.LittleEndian.AppendUint64(bytes.Clone(about), uint64(len(about)))
}

// adopt copies what a build has made to its place, where only whole files stand. The directory is the tools' own: nothing there is
// what its name says before it was looked at.
func (b *Builder) adopt(from, digest string, about []byte) (*Executable, error) {
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > buildFile {
		return nil, errors.Join(errors.New("the tools left no executable"), err)
	}
	fresh := path.Join(b.work, "new-"+filepath.Base(filepath.Dir(from))) // of this build alone
	out, err := b.at.Open(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	size, err := io.Copy(io.MultiWriter(out, h), io.MultiReader(io.LimitReader(in, buildFile), bytes.NewReader(withAbout(about))))
	if err := errors.Join(err, out.Chmod(0o555), out.Sync(), out.Close()); err != nil {
		return nil, err
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	name := exeName(digest, b.opts.Key.Seal(exeKind, digest, size, sum))
	return &Executable{Path: b.at.Path(name), Digest: digest, Sum: "sha256:" + hex.EncodeToString(sum[:]), About: about}, b.at.Rename(fresh, name)
}

// prune removes the least recently used executables while all together take more than MaxBytes, and never the one to keep.
func (b *Builder) prune(keep string) error {
	b.pruning.Lock()
	defer b.pruning.Unlock()
	names, err := b.at.List(exeDir)
	if err != nil {
		return err
	}
	type file struct {
		name string
		size int64
		used time.Time
	}
	var files []file
	total := int64(0)
	for _, name := range names {
		name = path.Join(exeDir, name)
		info, err := b.at.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone meanwhile
		}
		files = append(files, file{name, info.Size, info.ModTime}) // anything but a file goes first
		total += info.Size
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	for _, f := range files {
		if total <= b.opts.MaxBytes {
			break
		}
		if b.at.Path(f.name) == keep {
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
