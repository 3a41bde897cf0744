package app

import (
	"fmt"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"
)

// Bytes is an amount of memory or disk space in bytes.
type Bytes int64

// ParseBytes parses an amount such as 2GiB, 512MiB, 1.5 GB or 1073741824. KiB, MiB and GiB are powers of 1024; kB, MB
// and GB are powers of 1000.
func ParseBytes(text string) (Bytes, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > 1<<60 {
		return 0, fmt.Errorf("%q is not an amount of memory, such as 512MiB or 2GiB", text)
	}
	return Bytes(n), nil
}

// String formats the amount with a binary unit, rounded, such as 512 MiB.
func (b Bytes) String() string { return humanize.IBytes(uint64(max(b, 0))) }

// Bounds of options.
const (
	leastRunnerMemory Bytes = 64 << 20
	leastProgramCache Bytes = 64 << 20
	leastFetchMax     Bytes = 1 << 10
	mostFetchMax      Bytes = 64 << 20
	// memoryUnknown is the result of shareOfMemory if the amount of memory cannot be determined.
	memoryUnknown Bytes = 512 << 20
)

// shareOfMemory returns a quarter of the control group's memory limit or, without a limit, of the machine's memory. It
// returns at least leastRunnerMemory.
func shareOfMemory() Bytes {
	n, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err != nil {
		return memoryUnknown
	}
	return max(Bytes(min(n, 1<<60)/4), leastRunnerMemory)
}
