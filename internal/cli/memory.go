package cli

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"
)

// Bounds of the daemon's memory limit (GOMEMLIMIT). The limit is soft: near it the garbage collector works harder.
const (
	memoryShare = 0.5 // of the available memory; the rest is for runners
	leastMemory = 128 << 20
	mostMemory  = 1 << 30
)

// limitMemory sets the limit from the available memory that provider reports, unless GOMEMLIMIT is set. serve lets
// garbage grow to four times the live heap; without a limit, a daemon in a container could be killed for exceeding the
// container's memory.
func limitMemory(log zerolog.Logger, provider memlimit.Provider) {
	bounded := func() (uint64, error) {
		n, err := provider()
		return min(n, uint64(mostMemory/memoryShare)), err
	}
	n, err := memlimit.Set(memlimit.WithProvider(bounded), memlimit.WithRatio(memoryShare),
		memlimit.WithMin(leastMemory))
	log.Debug().Err(err).Int64("bytes", n).Msg("memory limit of the daemon")
}
