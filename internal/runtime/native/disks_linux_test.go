package native

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ownMounts is the environment variable that names the case to a test process with mounts of its own.
const ownMounts = "RECURGENTD_TEST_MOUNTS"

// On a full disk, a read-only one, and one mounted noexec, the error names the cause and the remedy, and disappears
// after the remedy. The disks are real: file systems in memory, in a process's mount namespace.
func TestDisks(t *testing.T) {
	if name := os.Getenv(ownMounts); name != "" {
		onDisk(t, name)
		return
	}
	t.Parallel()
	for _, name := range []string{"full", "read-only", "noexec"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDisks$")
		cmd.Env = append(os.Environ(), ownMounts+"="+name)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || strings.Contains(string(out), "--- SKIP") {
			t.Skipf("this machine gives no mount namespace: %v", err)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func onDisk(t *testing.T, name string) {
	top := t.TempDir()
	before, after := map[string]string{"full": "size=64k", "read-only": "", "noexec": ""}[name],
		map[string]string{"full": "size=4m"}[name]
	flags := map[string]uintptr{"noexec": unix.MS_NOEXEC}[name]
	if err := unix.Mount("none", top, "tmpfs", flags, before); err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(top, unix.MNT_DETACH)
	b := carrying(t, filepath.Join(top, "cache"), packOf(t, strings.Repeat("fill", 10<<10)))
	if name == "read-only" {
		if err := unix.Mount("none", top, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"full": "no space left on device; free 200 MB there",
		"read-only": "read-only file system; let the daemon write there",
		"noexec":    "no file there can be executed: permission denied; mount its file system without noexec"}[name]
	for range 2 {
		err := b.Prepare(t.Context())
		if _, is := errors.AsType[*DirError](err); !is || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	if err := TryDir(top); (err == nil) != (name == "full") {
		t.Errorf("a look at the directory: %v", err)
	}
	if err := unix.Mount("none", top, "", unix.MS_REMOUNT, after); err != nil {
		t.Fatal(err)
	}
	ready(t, b)
}
