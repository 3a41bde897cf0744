package app

import (
	"errors"
	"testing"
	"time"
)

func TestDurability(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		interval time.Duration
		resolved string // "" if it is refused
	}{
		"always": {0, "always"}, "interval:10ms": {10 * time.Millisecond, "interval:10ms"},
		"interval:0.5s": {500 * time.Millisecond, "interval:500ms"},
		"interval:1ms":  {time.Millisecond, "interval:1ms"}, "interval:1s": {time.Second, "interval:1s"},
		"": {}, "never": {}, "interval": {}, "interval:": {}, "interval:10": {}, "interval:-1s": {}, "interval:0s": {},
		"interval:2s": {}, "interval:999us": {}, "10ms": {}, "always:1ms": {},
	} {
		o := Options{Durability: text}
		err := o.checkDurability()
		var refused *OptionError
		if (want.resolved == "") != errors.As(err, &refused) || err == nil && o.Durability != want.resolved {
			t.Errorf("%q: got %q, %v, want %q", text, o.Durability, err, want.resolved)
		}
		if got, _ := o.interval(); got != want.interval {
			t.Errorf("%q: got an interval of %s, want %s", text, got, want.interval)
		}
	}
}
