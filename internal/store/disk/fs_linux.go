package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/store"
)

// Sync makes the content durable. Times of reading and writing, which nobody needs after a crash, stay behind.
func (f osFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Preallocate makes room. A file system that cannot is no fault: its writes may then fail, which is handled too.
func (f osFile) Preallocate(size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil
		}
		return err
	}
}

func (d dirFS) Free() (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(string(d), &st); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}

// Lock takes the lock file for this process; it goes with the process, however that ends.
func (d dirFS) Lock(name string) (unlock func() error, err error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is %w (pid %s); stop it or choose another --data-dir", string(d), errHeld, strings.TrimSpace(string(holder)))
		}
		return nil, err
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for the message above; the lock holds without it
	}
	return f.Close, nil
}

// errHeld is store.ErrInUse in the words of the command line.
var errHeld error = heldError{}

type heldError struct{}

func (heldError) Error() string   { return "in use by another recurgentd" }
func (heldError) Is(e error) bool { return e == store.ErrInUse }
