package evolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Bounds of the pattern memory.
const (
	patternWindow = 5 // newest events that are examined
	patternLimit  = 4 // patterns that a prompt shows
	patternRepeat = 2 // events in which a pattern must occur
)

// Pattern is a capability that programs of a role needed repeatedly.
type Pattern struct {
	Capability string `json:"capability"`
	Count      int    `json:"count"`
	Window     int    `json:"window"` // number of events examined
	LastSeen   string `json:"last_seen"`
}

// Patterns returns the capabilities that occur at least twice in the last five events, at most four of them. They are
// sorted by frequency, then by recency, then by name. events are oldest first.
func Patterns(events []agent.PatternEvent) []Pattern {
	events = events[max(0, len(events)-patternWindow):]
	found := map[string]*Pattern{}
	for _, e := range events {
		seen := map[string]bool{}
		for _, c := range e.Capabilities {
			if seen[c] || c == "" {
				continue
			}
			seen[c] = true
			if found[c] == nil {
				found[c] = &Pattern{Capability: c, Window: len(events)}
			}
			found[c].Count++
			found[c].LastSeen = max(found[c].LastSeen, e.Timestamp)
		}
	}
	out := []Pattern{}
	for _, p := range found {
		if p.Count >= patternRepeat {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.LastSeen, a.LastSeen),
			cmp.Compare(a.Capability, b.Capability))
	})
	return out[:min(len(out), patternLimit)]
}

// common lists capabilities that almost any program has, so their repetition is not informative.
var common = []string{"text_scan", "numeric", "sorting", "date_time", "json_shape"}

// PatternsForPrompt renders Patterns without common capabilities, one line each, for the prompt of a depth-0 call.
func PatternsForPrompt(events []agent.PatternEvent) []string {
	events = slices.Clone(events[max(0, len(events)-patternWindow):])
	for i := range events {
		events[i].Capabilities = slices.DeleteFunc(slices.Clone(events[i].Capabilities),
			func(c string) bool { return slices.Contains(common, c) })
	}
	var out []string
	for _, p := range Patterns(events) {
		out = append(out, fmt.Sprintf("%s: seen in %d of the last %d calls", p.Capability, p.Count, p.Window))
	}
	return out
}

// Capable returns the events that have a capability. The others are only kept for their weak success.
func Capable(events []agent.PatternEvent) []agent.PatternEvent {
	out := make([]agent.PatternEvent, 0, len(events))
	for _, e := range events {
		if len(e.Capabilities) > 0 {
			out = append(out, e)
		}
	}
	return out
}
