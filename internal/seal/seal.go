// Package seal authenticates what a daemon has derived and keeps in its data directory to execute it later: compiled programs and packages, and what is known of them. A
// seal is made with a key of the installation. The key is of random bytes in a file, and of where this file is: its inode, and when that changed. So what an archive
// holds, or a copy of the directory, has no seal that counts: nobody knows beforehand what the file's inode will be, and no copy has the time of another file.
//
// A seal says that this installation wrote these bytes to this place. It knows nothing of what they are.
package seal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/beneath"
)

// File is the key's file.
const File = "installation.key"

// A Key seals. It is safe for concurrent use.
type Key struct{ mac []byte }

// errUnfit reports that this installation did not make the file as a key.
var errUnfit = errors.New(File + " is no key of this installation")

// Open reads the key of the directory. One that is missing or cannot be this installation's is made anew, and no earlier seal counts then.
func Open(dir *beneath.Dir) (*Key, error) {
	k, err := Read(dir)
	if err == nil {
		return k, nil
	}
	if err := dir.RemoveAll(File); err != nil {
		return nil, err
	}
	f, err := dir.Open(File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	random := make([]byte, sha256.Size)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	_, err = f.Write(random)
	if err := errors.Join(err, f.Sync(), f.Close(), dir.SyncDir(".")); err != nil {
		return nil, err
	}
	return Read(dir)
}

// Read reads the key of the directory.
func Read(dir *beneath.Dir) (*Key, error) {
	f, err := dir.Open(File, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	if st.Size != sha256.Size || st.Nlink != 1 || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return nil, errUnfit
	}
	random := make([]byte, sha256.Size)
	if _, err := io.ReadFull(f, random); err != nil {
		return nil, err
	}
	place := binary.LittleEndian.AppendUint64(nil, st.Ino)
	place = binary.LittleEndian.AppendUint64(place, uint64(st.Ctim.Nano()))
	mac, err := hkdf.Key(sha256.New, random, place, "recurgentd: derived files", sha256.Size)
	return &Key{mac}, err
}

// Seal returns the seal of what is kept under the name, of its kind: hexadecimal digits.
func (k *Key) Seal(kind, name string, size int64, sum [sha256.Size]byte) string {
	h := hmac.New(sha256.New, k.mac)
	fmt.Fprintf(h, "%s\x00%s\x00%d\x00", kind, name, size)
	h.Write(sum[:])
	return hex.EncodeToString(h.Sum(nil))
}

// SealText is Seal of a text.
func (k *Key) SealText(kind, name string, text []byte) string {
	return k.Seal(kind, name, int64(len(text)), sha256.Sum256(text))
}

// Fits reports whether the two seals are the same.
func Fits(seal, want string) bool { return hmac.Equal([]byte(seal), []byte(want)) }

// A Place is what changes when a file or a directory is replaced or changed.
type Place struct {
	inode   uint64
	changed int64
	size    int64
}

// PlaceOf returns the place of an open file or directory. It must be the daemon's own, and nobody else's to write to.
func PlaceOf(f *os.File) (Place, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Place{}, err
	}
	return placeOf(&st, f.Name())
}

// PlaceIn is PlaceOf for the file of that name in an open directory. Where the name leads to a link, the place is the link's.
func PlaceIn(dir *os.File, name string) (Place, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Place{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return placeOf(&st, name)
}

func placeOf(st *unix.Stat_t, name string) (Place, error) {
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return Place{}, &fs.PathError{Op: "use", Path: name,
			Err: errors.New("it belongs to somebody else, or others may write to it")}
	}
	return Place{st.Ino, st.Ctim.Nano(), st.Size}, nil
}

// buffers are what files are read into: a start sums up hundreds of them.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// SumOf sums up an open file from its start, at most so many bytes.
func SumOf(f *os.File, most int64) (size int64, sum [sha256.Size]byte, err error) {
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	h := sha256.New()
	size, err = io.CopyBuffer(h, io.NewSectionReader(f, 0, most), buffer[:])
	return size, [sha256.Size]byte(h.Sum(nil)), err
}
