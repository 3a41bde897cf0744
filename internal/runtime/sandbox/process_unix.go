//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// killProcess sends SIGKILL to the process, and to its group if runners can have children. It also ends a stopped
// process.
func killProcess(p *os.Process) {
	if !forkForbidden {
		syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
	p.Kill()
}

// pipeSilent reports whether the pipe is empty and its other end is open. It may consume a byte if it returns false.
func pipeSilent(f *os.File) bool {
	rc, err := f.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	err = rc.Control(func(fd uintptr) {
		var b [1]byte
		_, err := syscall.Read(int(fd), b[:])
		silent = err == syscall.EAGAIN
	})
	return err == nil && silent
}

// peakMemory returns the peak resident memory of the ended process in bytes, or 0 if it is unknown.
func peakMemory(s *os.ProcessState) int64 {
	if s == nil {
		return 0
	}
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return int64(usage.Maxrss) * rssUnit
}

// ownPeak returns the peak resident memory of this process in bytes, or 0 if it is unknown.
func ownPeak() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return int64(usage.Maxrss) * rssUnit
}

// deathSignal classifies the signal that ended the process: "cpu", "killed", "sys" or the name of another signal, and
// "" for an exit. SIGKILL counts as "cpu" if the process used up cpuLimit seconds.
func deathSignal(s *os.ProcessState, cpuLimit int64) string {
	if s == nil {
		return ""
	}
	ws, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return ""
	}
	switch ws.Signal() {
	case syscall.SIGXCPU:
		return "cpu"
	case syscall.SIGKILL:
		if int64((s.UserTime()+s.SystemTime()).Seconds())+1 >= cpuLimit {
			return "cpu"
		}
		return "killed"
	case syscall.SIGSYS:
		return "sys"
	}
	return ws.Signal().String()
}
