// Package seal authenticates files that a daemon has derived and will execute later: compiled programs and packages,
// and their metadata. A seal is made with a key of the installation. The key is derived from random bytes in a file and
// from that file's inode number and change time. Seals in an archive or in a copy of the data directory are therefore
// invalid: the inode number of a new file cannot be predicted, and a copy cannot have the change time of the original.
//
// A seal proves that this installation wrote these bytes under this name. The package knows nothing about the meaning
// of the bytes.
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

// File is the name of the key's file in the data directory.
const File = "installation.key"

// A Key makes seals. It may be used concurrently.
type Key struct{ mac []byte }

// errUnfit means that the file cannot be a key that this installation made.
var errUnfit = errors.New(File + " is no key of this installation")

// Open reads the key of the directory. A key that is missing or unusable is replaced by a new one, which invalidates
// all earlier seals.
func Open(dir *beneath.Dir) (*Key, error) {
	k, err := read(dir)
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
	return read(dir)
}

// read reads the key of the directory. It returns an error matching fs.ErrNotExist if there is none, and an error if
// the file's size, owner, mode or link count show that this installation did not write it.
func read(dir *beneath.Dir) (*Key, error) {
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

// Seal returns the seal of a kind of content kept under the name, as hexadecimal digits; size and sum are those of the
// content.
func (k *Key) Seal(kind, name string, size int64, sum [sha256.Size]byte) string {
	h := hmac.New(sha256.New, k.mac)
	fmt.Fprintf(h, "%s\x00%s\x00%d\x00", kind, name, size)
	h.Write(sum[:])
	return hex.EncodeToString(h.Sum(nil))
}

// SealText is Seal of content in memory.
func (k *Key) SealText(kind, name string, text []byte) string {
	return k.Seal(kind, name, int64(len(text)), sha256.Sum256(text))
}

// Fits reports whether the two seals are equal. The comparison takes constant time.
func Fits(seal, want string) bool { return hmac.Equal([]byte(seal), []byte(want)) }

// A Place identifies a state of a file or directory. It changes when the file is replaced or modified.
type Place struct {
	inode   uint64
	changed int64 // change time in nanoseconds since 1970
	size    int64
}

// PlaceOf returns the place of an open file or directory. It returns an error if the file belongs to another user or is
// writable by others.
func PlaceOf(f *os.File) (Place, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Place{}, err
	}
	return placeOf(&st, f.Name())
}

// PlaceIn is PlaceOf for a name in an open directory. If the name is a symbolic link, the place is that of the link.
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

// buffers are reused because a start hashes hundreds of files.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// SumOf returns the number of bytes and the SHA-256 of an open file from its start, reading at most as many bytes as
// most.
func SumOf(f *os.File, most int64) (size int64, sum [sha256.Size]byte, err error) {
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	h := sha256.New()
	size, err = io.CopyBuffer(h, io.NewSectionReader(f, 0, most), buffer[:])
	return size, [sha256.Size]byte(h.Sum(nil)), err
}
