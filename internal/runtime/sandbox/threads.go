package sandbox

import (
	"errors"
	"fmt"
	"math"
	"runtime"
)

// RunnerTasks is the number of tasks (threads and processes) budgeted for a runner where the system limits them.
const RunnerTasks = 16

// daemonTasks returns the number of tasks reserved for the daemon: 48 and two for each CPU.
func daemonTasks() int { return 2 * daemonThreads() }

// daemonThreads returns how many threads the daemon keeps in reserve. The Go runtime would abort the daemon if the
// system refused it a thread. Apart from the threads that run Go, this covers threads blocked in system calls, mostly
// on the disk.
func daemonThreads() int { return 24 + runtime.GOMAXPROCS(0) }

// runnerFiles is the number of descriptors that the daemon holds per runner: three pipes, its statistics in /proc, and
// the process.
const runnerFiles = 5

const roomForAll = "on (room for all runners)"

// errMostRunners means that all processes that the system allows are in use. It is transient.
var errMostRunners = errors.New("no more processes are allowed")

// mostRunners returns how many runners the system has room for in addition to the daemon, and a description for the
// status. enough is the most that the pool can use. The figure holds at start only: if others of the same user or group
// use up tasks later, starting a process fails.
func mostRunners(enough int, room func() (int, string)) (most int, words string, err error) {
	if room == nil {
		room = taskRoom
	}
	most = math.MaxInt32
	left, limit := room()
	if limit != "" {
		most = (left - daemonTasks()) / RunnerTasks
	}
	if most < 2 {
		return 0, "", fmt.Errorf(
			"sandbox: there is room for %d threads and processes, and the daemon with two runners takes %d: %s", left,
			daemonTasks()+2*RunnerTasks, limit)
	}
	// Half of the descriptors are for connections and files.
	if files, ok := fileLimit(); ok && files/2/runnerFiles < most {
		most, limit = max(files/2/runnerFiles, 2), fmt.Sprintf("the limit of open files (RLIMIT_NOFILE) is %d", files)
	}
	if most >= enough { // the exact figure differs at each start and does not matter then
		return most, roomForAll, nil
	}
	return most, fmt.Sprintf("on (at most %d runners: %s)", most, limit), nil
}
