package evolve

import (
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// What a prompt shows of a role's pattern memory (ADR 0013 of the original).
const (
	patternWindow  = 5 // newest events looked at
	patternRepeats = 2 // times a capability must stand in them
	patternLimit   = 4 // capabilities shown
)

// PatternsForPrompt returns the capabilities that keep coming back among a role's newest events: the most frequent
// first, then by name. events are oldest first.
func PatternsForPrompt(events []agent.PatternEvent) []string {
	seen := map[string]int{}
	for _, e := range events[max(0, len(events)-patternWindow):] {
		capabilities := slices.Clone(e.Capabilities)
		slices.Sort(capabilities)
		for _, c := range slices.Compact(capabilities) {
			seen[c]++
		}
	}
	var out []string
	for c, n := range seen {
		if n >= patternRepeats {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if seen[a] != seen[b] {
			return seen[b] - seen[a]
		}
		return strings.Compare(a, b)
	})
	return out[:min(len(out), patternLimit)]
}
