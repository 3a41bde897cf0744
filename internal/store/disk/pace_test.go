package disk

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Rounds begin at the interval, or at once when requested. After a long round the disk is idle for three times as long,
// up to a bound, even if another round is requested.
func TestPace(t *testing.T) {
	for name, tt := range map[string]struct {
		took   time.Duration
		kicked bool // another round is always requested
		want   []time.Duration
	}{
		"short":            {0, false, []time.Duration{1000, 2000, 3000}},
		"within interval":  {200, false, []time.Duration{1000, 2000, 3000}},
		"long":             {500, false, []time.Duration{1000, 3000, 5000}},
		"long, asked for":  {500, true, []time.Duration{0, 2000, 4000}},
		"short, asked for": {100, true, []time.Duration{0, 400, 800}},
		"endless":          {60_000, true, []time.Duration{0, 70_000, 140_000}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				kick := make(chan struct{})
				if tt.kicked {
					close(kick)
				}
				start := time.Now()
				var got []time.Duration
				pace(ctx, time.Second, kick, func(kicked bool) {
					got = append(got, time.Since(start)/time.Millisecond)
					if kicked != tt.kicked {
						t.Errorf("a round at %v was asked for: %v", time.Since(start), kicked)
					}
					time.Sleep(tt.took * time.Millisecond)
					if len(got) == len(tt.want) {
						end()
					}
				})
				if !slices.Equal(got, tt.want) {
					t.Errorf("rounds at %d ms, want %d", got, tt.want)
				}
			})
		})
	}
}
