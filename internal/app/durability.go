package app

import (
	"strings"
	"time"
)

// durabilityAlways syncs a call's journal entry before the call is answered.
const durabilityAlways = "always"

// Bounds of the interval. It is at most a second, because the files follow the journal after a second and must not
// contain what is not synced.
const (
	leastInterval   = time.Millisecond
	longestInterval = time.Second
)

// interval returns how long a call's journal entry may wait for its sync; 0 for durabilityAlways.
func (o *Options) interval() (time.Duration, error) {
	if o.Durability == durabilityAlways {
		return 0, nil
	}
	text, named := strings.CutPrefix(o.Durability, "interval:")
	d, err := time.ParseDuration(text)
	if !named || err != nil || d < leastInterval || d > longestInterval {
		return 0, refuse("durability",
			"must be always, or interval: and a duration of %s to %s such as interval:10ms, got %q", leastInterval,
			longestInterval, o.Durability)
	}
	return d, nil
}

// checkDurability checks the option, and writes its duration in a canonical form.
func (o *Options) checkDurability() error {
	d, err := o.interval()
	if err == nil && d > 0 {
		o.Durability = "interval:" + d.String()
	}
	return err
}
