package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the processor time that the process has used, or 0 if it is gone.
func (r *runner) cpuTime() time.Duration {
	var ts unix.Timespec
	// The process's CPU clock: clock_getcpuclockid(3) computes the id in the same way.
	if unix.ClockGettime(int32(^r.proc.Pid<<3|2), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// openUsage opens the file that resident reads, or returns nil. It stays open, because a warm call reads it once and
// opening costs more than reading.
func openUsage(pid int) *os.File {
	f, err := os.Open(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return nil
	}
	return f
}

// resident returns the resident memory of the runner in bytes, and its private part. The rest are pages of the binary,
// which all runners share. ok is false if the memory cannot be read.
func (r *runner) resident() (all, own int64, ok bool) {
	if r.usage == nil {
		return 0, 0, false
	}
	read, _ := r.usage.ReadAt(r.figures[:], 0)
	_, rest, _ := bytes.Cut(r.figures[:read], []byte(" "))
	first, rest, _ := bytes.Cut(rest, []byte(" "))
	second, _, ok := bytes.Cut(rest, []byte(" "))
	page := int64(os.Getpagesize())
	all = number(first) * page
	return all, all - number(second)*page, ok
}

func number(digits []byte) (n int64) {
	for _, c := range digits {
		n = 10*n + int64(c-'0')
	}
	return n
}

// oomBonus is added to the daemon's oom_score_adj for runners, in thousandths of the machine's memory, so that the
// kernel ends runners first.
const oomBonus = 500

// offerToOOM raises the OOM score of the process above the daemon's, and returns the state of that layer.
func offerToOOM(pid int) string {
	score, err := ownOOMScore()
	if err != nil {
		return "off (" + err.Error() + ")"
	}
	score = min(score+oomBonus, 1000)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(score)), 0o644); err != nil {
		return "off (" + err.Error() + ")"
	}
	return fmt.Sprintf("on (%d)", score)
}

// ownOOMScore returns the daemon's oom_score_adj, which is inherited from whoever started it.
var ownOOMScore = sync.OnceValues(func() (int, error) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(own)))
})
