package attempt

import (
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/store"
)

// HistoryKey is the context key under which programs and clients find the session's records. The records are never
// stored there. A value that a client stored under the key is neither shown nor changed.
const HistoryKey = report.ContextHistory

// WholeHistory returns a query for the newest records of a session. Records of nested calls are included if all is set.
func WholeHistory(all bool) store.HistoryQuery {
	return store.HistoryQuery{Limit: maxHistoryRecords, Bytes: MaxHistoryBytes, Scan: MaxHistoryLook, Desc: true,
		Depth0: !all}
}

// withoutHistory removes the records from a program's context change: they are a copy and are never written back.
func withoutHistory(change *agent.ContextChange) *agent.ContextChange {
	if change == nil {
		return nil
	}
	if _, set := change.Set[HistoryKey]; !set && !slices.Contains(change.Delete, HistoryKey) {
		return change
	}
	kept := &agent.ContextChange{Set: map[string]json.RawMessage{}}
	for k, v := range change.Set {
		if k != HistoryKey {
			kept.Set[k] = v
		}
	}
	kept.Delete = slices.DeleteFunc(slices.Clone(change.Delete), func(k string) bool { return k == HistoryKey })
	return kept
}
