package disk

import (
	"context"
	"time"
)

// longestRest bounds how far the files can lag, and thus how much waits in memory.
const longestRest = 10 * time.Second

// pace calls round until ctx ends: once each interval, and at each kick. After a round it rests three times as long as
// the round took, because the journal is on the same disk. Without the rest, the files of one owner's thousand busy
// sessions, which never ran out of changes, made every commit wait ten milliseconds or more.
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
