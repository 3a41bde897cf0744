package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/beneath"
)

// Sync makes the content durable, but not the times of access and modification, which are not needed after a crash.
func (f osFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Preallocate reserves space. It does nothing on file systems that cannot; writes may then fail for lack of space,
// which callers handle anyway.
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

// SyncAll syncs the whole file system that holds the directory.
func (d dirFS) SyncAll() error {
	if !syncfsReports() {
		return errors.ErrUnsupported
	}
	f, err := d.OpenDir(".")
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		err := unix.Syncfs(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// syncfsReports reports whether syncfs returns write errors. It does so since Linux 5.8: see syncfs(2).
var syncfsReports = sync.OnceValue(func() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 8)
})

func (d dirFS) Free() (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.Path("."), &st); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}

// Lock retries for up to five seconds while only children of a killed holder hold the lock.
func (d dirFS) Lock(name string) (unlock func() error, err error) {
	tries := 0
	return lock(d.Dir, name, func() bool {
		time.Sleep(50 * time.Millisecond)
		tries++
		return tries < 100
	})
}

// lock locks the named file. If a process is killed while it starts a child, that child holds the lock until it
// executes its own program. If only such a child can hold the lock, lock retries for as long as again returns true.
func lock(dir *beneath.Dir, name string, again func() bool) (unlock func() error, err error) {
	f, err := dir.Open(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			holder := holderIn(f)
			if ended(holder) && again() {
				continue
			}
			err = &LockedError{name, holder}
		}
		_ = f.Close()
		return nil, err
	}
	if err := f.Truncate(0); err == nil {
		// The id is for LockedError; the lock holds without it.
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return func() error {
		// Closing alone would leave the lock to a child that is being started.
		return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
	}, nil
}

// holderIn returns the process id in the lock file, or "" if there is none.
func holderIn(f io.ReaderAt) string {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 32))
	return strings.TrimSpace(string(text))
}

// ended reports whether the process has ended. It returns false if pid is not a number.
func ended(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && n > 0 && errors.Is(unix.Kill(n, 0), unix.ESRCH)
}
