//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// killProcess ends the process and its group, a stopped one too.
func killProcess(p *os.Process) {
	if !forkForbidden {
		syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
	p.Kill()
}

// pipeSilent reports whether nothing can be read from the pipe and its other end is open.
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

// peakMemory returns the most memory that the process had resident, in bytes, 0 when unknown.
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

// ownPeak returns the most memory that this process has had resident, in bytes.
func ownPeak() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return int64(usage.Maxrss) * rssUnit
}

// deathSignal names the signal that ended the process: cpu, killed, sys, another one's name, or "" for an exit.
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
