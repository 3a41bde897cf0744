package runtime

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/store"
)

// historyKey is the context key under which programs and clients find the session's records. They are never stored there. What a client stored
// under the key is neither shown nor changed.
const historyKey = report.ContextHistory

// records are those of the session that History gives to a program, oldest first.
func (r *Runtime) records(ctx context.Context, session string, q store.HistoryQuery) (json.RawMessage, error) {
	p, err := r.store.History(ctx, session, q)
	if err != nil {
		return nil, err
	}
	if q.Desc {
		slices.Reverse(p.Records)
	}
	return rawArray(p.Records), nil
}

// wholeHistory are the newest records of a session, nested ones too if all.
func wholeHistory(all bool) store.HistoryQuery {
	return store.HistoryQuery{Limit: maxHistoryRecords, Bytes: maxHistoryBytes, Scan: maxHistoryLook, Desc: true,
		Depth0: !all}
}

// shownContext is a stored context as clients see it: with the session's records.
func shownContext(stored map[string]json.RawMessage, records json.RawMessage) map[string]json.RawMessage {
	shown := make(map[string]json.RawMessage, len(stored)+1)
	maps.Copy(shown, stored)
	shown[historyKey] = records
	return shown
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
