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

// cpuTime returns the processor time that the runner has used, 0 when it is gone.
func (r *runner) cpuTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(int32(^r.proc.Pid<<3|2), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// openUsage opens what resident reads. It stays open: a warm call reads it once, and opening costs more than reading.
func openUsage(pid int) *os.File {
	f, err := os.Open(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return nil // and resident says that it does not know
	}
	return f
}

// resident returns the resident memory of the runner in bytes, and the private part of it: the rest are pages of the binary, which all
// runners share. ok is false if that cannot be read.
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

// oomBonus is how much likelier than the daemon a runner is to be ended when memory runs out, in thousandths of the machine's memory.
const oomBonus = 500

// offerToOOM has the kernel prefer the runner to the daemon when it ends a process for its memory, and says what came of it.
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

// ownOOMScore is the daemon's own, which whoever starts it sets.
var ownOOMScore = sync.OnceValues(func() (int, error) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(own)))
})
