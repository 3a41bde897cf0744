package disk

import (
	"context"
	"time"
)

// longestRest bounds how far the files can be behind, and what waits in memory to be written.
const longestRest = 10 * time.Second

// pace makes rounds until ctx ends: one each interval, and one at each kick. After a round it rests three times as long as that took. The
// disk is also that of the journal: without the rest the files of one owner's thousand busy sessions, which are never all written, made
// every commit wait ten milliseconds or more.
func pace(ctx context.Context, interval time.Duration, kick <-chan struct{}, round func(kicked bool)) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		kicked := false
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			select {
			case <-kick:
				kicked = true
			default:
			}
		case <-kick:
			kicked = true
		}
		began := time.Now()
		round(kicked)
		took := time.Since(began)
		rest := min(3*took, longestRest)
		timer.Reset(rest)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(max(0, interval-took-rest))
	}
}
