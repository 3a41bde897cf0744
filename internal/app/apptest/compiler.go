package apptest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Compiler returns the directory in which all daemons under test keep what they compile (app.Options.CompilerDir), and the go command's cache (GoCache). Tests of later runs find there what
// does not change: executables are kept by all that they are made of. It is below the temporary directory, where users of the sandbox may go through it.
var Compiler = sync.OnceValues(func() (dir [2]string, err error) {
	own := filepath.Join(os.TempDir(), fmt.Sprintf("recurgentd-tests-%d", os.Getuid()))
	if err := os.Mkdir(own, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return dir, err
	}
	info, err := os.Lstat(own)
	if err != nil {
		return dir, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(s.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return dir, fmt.Errorf("%s is not a directory of this user alone: remove it", own)
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	return [2]string{filepath.Join(own, "compiled"), strings.TrimSpace(string(cache))}, err
})
