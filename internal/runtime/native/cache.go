package native

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/seal"
)

// An executable is exe/<digest>.<seal>: the digest is of all that it was made of, and the seal of its bytes under this digest.
const (
	exeDir  = "exe"
	exeKind = "executable"
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
		sum, err := b.verify(name, digest, given)
		if err == nil {
			return &Executable{Path: b.at.Path(name), Digest: digest, Sum: "sha256:" + hex.EncodeToString(sum[:])}, nil
		}
		if err := b.at.RemoveAll(name); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

var errSeal = errors.New("it has no seal of this installation")

// verify checks the seal of an executable, and marks it as used.
func (b *Builder) verify(name, digest, given string) (sum [sha256.Size]byte, err error) {
	f, err := b.at.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	if _, err := seal.PlaceOf(f); err != nil {
		return sum, err
	}
	size, sum, err := seal.SumOf(f, buildFile+1)
	if err == nil && !seal.Fits(given, b.opts.Key.Seal(exeKind, digest, size, sum)) {
		err = errSeal
	}
	if err != nil {
		return sum, err
	}
	now := unix.NsecToTimeval(time.Now().UnixNano())
	return sum, unix.Futimes(int(f.Fd()), []unix.Timeval{now, now})
}

// adopt copies what a build has made to its place, where only whole files stand. The directory is the tools' own: nothing there is
// what its name says before it was looked at.
func (b *Builder) adopt(from, digest string) (*Executable, error) {
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > buildFile {
		return nil, errors.Join(errors.New("the tools left no executable"), err)
	}
	fresh := path.Join(exeDir, "new")
	if err := b.at.RemoveAll(fresh); err != nil {
		return nil, err
	}
	out, err := b.at.Open(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	size, err := io.Copy(io.MultiWriter(out, h), io.LimitReader(in, buildFile))
	if err := errors.Join(err, out.Chmod(0o555), out.Sync(), out.Close()); err != nil {
		return nil, err
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	name := exeName(digest, b.opts.Key.Seal(exeKind, digest, size, sum))
	return &Executable{Path: b.at.Path(name), Digest: digest, Sum: "sha256:" + hex.EncodeToString(sum[:])}, b.at.Rename(fresh, name)
}

// prune removes the least recently used executables while all together take more than MaxBytes, and never the one to keep.
func (b *Builder) prune(keep string) error {
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
	return nil
}
