package sandbox

import (
	"errors"
	"fmt"
	"math"
	"runtime"
)

// RunnerTasks is how many tasks, which are threads and processes, the daemon reckons with for a runner where the system limits them.
const RunnerTasks = 16

// DaemonTasks is how many tasks the daemon leaves to itself: 48 and two for each CPU.
func DaemonTasks() int { return 2 * daemonThreads() }

// daemonThreads are what the daemon keeps in reserve, too: where the system lets it make no more, the Go runtime would end it. Beside the
// processors that run Go, these are for what blocks a thread, which is the disk above all.
func daemonThreads() int { return 24 + runtime.GOMAXPROCS(0) }

// RunnerFiles is how many descriptors the daemon holds for a runner: three pipes, its statistics in /proc, and the process.
const RunnerFiles = 5

const roomForAll = "on (room for all runners)"

var errMostRunners = errors.New("no more processes are allowed")

// mostRunners returns how many runners the system has room for beside the daemon, and whether that is enough in words: enough is what the pool
// can use. It is a figure of the start: what others of the same user or group take later shows as a process that cannot be started.
func mostRunners(enough int, room func() (int, string)) (most int, words string, err error) {
	if room == nil {
		room = taskRoom
	}
	most = math.MaxInt32
	left, limit := room()
	if limit != "" {
		most = (left - DaemonTasks()) / RunnerTasks
	}
	if most < 2 {
		return 0, "", fmt.Errorf(
			"sandbox: there is room for %d threads and processes, and the daemon with two runners takes %d: %s", left,
			DaemonTasks()+2*RunnerTasks, limit)
	}
	// Half of the descriptors are for connections and files.
	if files, ok := fileLimit(); ok && files/2/RunnerFiles < most {
		most, limit = max(files/2/RunnerFiles, 2), fmt.Sprintf("the limit of open files (RLIMIT_NOFILE) is %d", files)
	}
	if most >= enough { // and then the figure, which differs at each start, says nothing
		return most, roomForAll, nil
	}
	return most, fmt.Sprintf("on (at most %d runners: %s)", most, limit), nil
}
