package sandbox

import (
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A runner of a compiled program that is killed from outside in the middle of a call costs the call nothing.
func TestNativeRunnerIsKilled(t *testing.T) {
	p := nativePool(t, forNative)
	req := request("echo", 1)
	req.Native, req.Timeout = compiled(t, "loop"), time.Minute
	done := make(chan Result, 1)
	go func() { done <- p.Run(t.Context(), req, &fakeHost{}) }()
	for pid := 0; pid == 0; goruntime.Gosched() {
		p.mu.Lock()
		for r := range p.live {
			if spins(r.proc.Pid) {
				pid = r.proc.Pid
				r.proc.Kill()
			}
		}
		p.mu.Unlock()
	}
	if got := <-done; string(got.Value) != "[1]" || got.Tier != TierEngine || got.Native == nil || got.Native.Kind != NativeBroken {
		t.Errorf("got %s on %s, fault %v", said(got), got.Tier, got.Native)
	}
}

// spins reports whether the process is a compiled program that has computed for 0.3 s, which its start does not take: it is in the middle of a call that does nothing else.
func spins(pid int) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || string(args) != "recurgent-native\x00loop\x00" {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if len(fields) < 12 {
		return false
	}
	ticks, err := strconv.Atoi(fields[11]) // utime, in hundredths of a second
	return err == nil && ticks >= 30
}
