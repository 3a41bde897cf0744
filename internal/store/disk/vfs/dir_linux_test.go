package vfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/beneath"
)

// held returns a lock file that is locked and names the process.
func held(t *testing.T, pid string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.WriteString(pid + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return f
}

// dirOf opens the directory of a file.
func dirOf(t *testing.T, path string) *beneath.Dir {
	t.Helper()
	d, err := beneath.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// endedProcess returns the id of a process that has ended.
func endedProcess(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^$")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strconv.Itoa(cmd.Process.Pid)
}

// If a living process holds the lock, Lock fails at once. If only a child of a killed process holds it, Lock waits.
func TestLock(t *testing.T) {
	t.Parallel()
	gone := endedProcess(t)
	for _, tt := range []struct {
		name, holder string
		released     int // number of the retry before which the lock is released; 0 means never
		asked        int
		locked       bool
	}{
		{"the holder lives", strconv.Itoa(os.Getpid()), 0, 0, false},
		{"nobody says who holds it", "", 0, 0, false},
		{"what it says is no process", "-1", 0, 0, false},
		{"the holder was killed, its child goes on", gone, 2, 2, true},
		{"the holder was killed, its child stays", gone, 0, 3, false},
	} {
		f := held(t, tt.holder)
		asked := 0
		unlock, err := lock(dirOf(t, f.Name()), "LOCK", func() bool {
			if asked++; asked == tt.released {
				_ = f.Close()
			}
			return asked < 3
		})
		var locked *LockedError
		if (err == nil) != tt.locked || asked != tt.asked || err != nil &&
			(!errors.As(err, &locked) || locked.Holder != tt.holder) {
			t.Errorf("%s: got %v, asked %d times, want locked %v, asked %d times", tt.name, err, asked, tt.locked,
				tt.asked)
		}
		if err == nil {
			text, readErr := os.ReadFile(f.Name())
			if err := errors.Join(readErr, unlock()); err != nil || string(text) != strconv.Itoa(os.Getpid())+"\n" {
				t.Errorf("%s: the file says %q, %v, want this process", tt.name, text, err)
			}
		}
	}
}

// A released lock is free even if a child that is being started still has a copy of the descriptor.
func TestUnlockBesideACopy(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // as the kernel names it
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "LOCK")
	at, never := dirOf(t, path), func() bool { return false }
	unlock, err := lock(at, "LOCK", never)
	if err != nil {
		t.Fatal(err)
	}
	held := copyOf(t, path)
	defer func() { _ = unix.Close(held) }()
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := lock(at, "LOCK", never)
	if err != nil {
		t.Fatalf("after it was given back: %v", err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

// copyOf returns a duplicate of this process's descriptor of the file, such as a child has before it executes its
// program.
func copyOf(t *testing.T, path string) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || name != path {
			continue
		}
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if n, err = unix.Dup(n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Fatalf("%s is not open", path)
	return 0
}
