package cli

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"
)

// Bounds of the daemon's own memory limit (GOMEMLIMIT), which is soft: near it the collector works harder.
const (
	memoryShare = 0.5 // of what there is; the rest is the runners'
	leastMemory = 128 << 20
	mostMemory  = 1 << 30
)

// limitMemory sets the limit by what provider says there is, unless GOMEMLIMIT is set. With garbage of four times the live
// heap (serve) a daemon in a container could else grow over the container's limit and be killed.
func limitMemory(log zerolog.Logger, provider memlimit.Provider) {
	bounded := func() (uint64, error) {
		n, err := provider()
		return min(n, uint64(mostMemory/memoryShare)), err
	}
	n, err := memlimit.Set(memlimit.WithProvider(bounded), memlimit.WithRatio(memoryShare),
		memlimit.WithMin(leastMemory))
	log.Debug().Err(err).Int64("bytes", n).Msg("memory limit of the daemon")
}
