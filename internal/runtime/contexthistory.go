package runtime

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// historyKey is the context key under which a program that names it literally finds the session's records. What the
// stored context holds there, by a client's hand, is kept aside: it is neither shown nor changed.
const historyKey = "conversation_history"

// namesHistory reports whether the program names the key, so that others pay nothing for it.
func namesHistory(f *report.Facts) bool {
	return f != nil && slices.Contains(f.ContextReads, historyKey)
}

// contextFor is the context that the generation's program sees: the call's, and the records where the program names
// them. A history that cannot be read is an empty one.
func (c *selected) contextFor(ctx context.Context, g *agent.Generation, h *host) map[string]json.RawMessage {
	if !namesHistory(c.r.facts.of(g)) {
		return c.memory
	}
	records, err := h.History(ctx, false, false, 0, 0)
	if err != nil {
		records = json.RawMessage("[]")
	}
	seen := make(map[string]json.RawMessage, len(c.memory)+1)
	maps.Copy(seen, c.memory)
	seen[historyKey] = records
	return seen
}

// shownContext returns a stored context as clients see it: conversation_history is an array, empty if the stored value is
// missing or not an array.
func shownContext(stored map[string]json.RawMessage, err error) (map[string]json.RawMessage, error) {
	if err != nil || agent.Kind(stored[historyKey]) == "array" {
		return stored, err
	}
	shown := make(map[string]json.RawMessage, len(stored)+1)
	maps.Copy(shown, stored)
	shown[historyKey] = json.RawMessage("[]")
	return shown, nil
}

// withoutHistory takes the records out of what a program did to its context: they are a copy, and never written back.
func withoutHistory(change *agent.ContextChange) *agent.ContextChange {
	if change == nil {
		return nil
	}
	if _, set := change.Set[historyKey]; !set && !slices.Contains(change.Delete, historyKey) {
		return change
	}
	kept := &agent.ContextChange{Set: map[string]json.RawMessage{}}
	for k, v := range change.Set {
		if k != historyKey {
			kept.Set[k] = v
		}
	}
	kept.Delete = slices.DeleteFunc(slices.Clone(change.Delete), func(k string) bool { return k == historyKey })
	return kept
}
