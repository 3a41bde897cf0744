package daemon

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// children lists the processes below the one with the id.
func children(pid int) (all []int) {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		id, _ := strconv.Atoi(strings.Split(name, "/")[2])
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		parents[id], _ = strconv.Atoi(string(fields[1]))
	}
	for id, parent := range parents {
		for ; parent > 1; parent = parents[parent] {
			if parent == pid {
				all = append(all, id)
				break
			}
		}
	}
	return all
}

// processMemory reads the writable memory of a process: what it has stored.
func processMemory(pid int) (out []byte) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil
	}
	defer maps.Close()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil
	}
	defer memory.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "rw") {
			continue
		}
		low, high, _ := strings.Cut(fields[0], "-")
		from, errLow := strconv.ParseInt(low, 16, 64)
		to, errHigh := strconv.ParseInt(high, 16, 64)
		if errLow != nil || errHigh != nil || to-from > 512<<20 {
			continue
		}
		part := make([]byte, to-from)
		if n, err := memory.ReadAt(part, from); err == nil {
			out = append(out, bytes.ReplaceAll(part[:n], make([]byte, 4096), nil)...) // pages never used
		}
	}
	return out
}
