package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// taskRoom returns how many more tasks (threads and processes) the daemon and its runners may have, and what limits
// them: the tightest control group, or the limit of the runners' user. limit is "" if there is none.
func taskRoom() (room int, limit string) {
	take := func(name string, max, now int) {
		if left := max - now; limit == "" || left < room {
			room, limit = left, fmt.Sprintf("%s is %d, of which %d are taken", name, max, now)
		}
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for _, dir := range taskGroups(string(groups)) {
		max, ok := readCount(dir + "/pids.max")
		now, known := readCount(dir + "/pids.current")
		if ok && known {
			take(dir+"/pids.max", max, now)
		}
	}
	uid := os.Geteuid()
	if uid == 0 {
		uid = wire.Nobody // root is exempt from the limit; its runners are not
	}
	var nproc unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &nproc) == nil && nproc.Cur < 1<<31 {
		take("the limit of processes (RLIMIT_NPROC)", int(nproc.Cur), tasksOf(uint32(uid)))
	}
	return room, limit
}

// fileLimit returns how many files the daemon may have open; ok is false if there is no limit or it is unknown. The Go
// runtime raises the soft limit to the hard one at start.
func fileLimit() (n int, ok bool) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<31 {
		return 0, false
	}
	return int(limit.Cur), true
}

// taskGroups returns the cgroup directories that may limit the tasks of a process: its own group and all ancestors. In
// a container the own group appears at the root.
func taskGroups(groups string) []string {
	var dirs []string
	for line := range strings.Lines(groups) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		var roots []string
		switch {
		case part[1] == "":
			roots = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
		case part[1] == "pids":
			roots = []string{"/sys/fs/cgroup/pids"}
		}
		for _, root := range roots {
			for path := filepath.Clean("/" + part[2]); ; path = filepath.Dir(path) {
				dirs = append(dirs, filepath.Join(root, path))
				if path == "/" {
					break
				}
			}
		}
	}
	return dirs
}

// readCount reads a file that holds a number. ok is false if it does not, as for "max".
func readCount(name string) (n int, ok bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err = strconv.Atoi(string(bytes.TrimSpace(text)))
	return n, err == nil
}

// tasksOf counts the threads of a user's processes that are visible in /proc.
func tasksOf(uid uint32) int {
	total := 0
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		info, err := d.Info()
		if err != nil {
			continue
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if _, err := strconv.Atoi(d.Name()); err != nil || !ok || owner.Uid != uid {
			continue
		}
		text, err := os.ReadFile("/proc/" + d.Name() + "/stat")
		if err != nil {
			continue
		}
		// The process name precedes the last ')' and may itself contain spaces and parentheses.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) > 17 {
			n, _ := strconv.Atoi(string(fields[17]))
			total += n
		}
	}
	return total
}
