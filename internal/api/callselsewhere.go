package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// unansweredHeader names, in a list of what runs, the replicas that did not say what runs there.
const unansweredHeader = "Recurgent-Unanswered"

// callsElsewhere adds to the calls that run here those that run at other replicas, as the client's own request reads them there, newest first. more
// reports whether a replica has further ones.
func (s *server) callsElsewhere(w *reply, r *http.Request, q *store.CallQuery, here []agent.LogEntry) (entries []agent.LogEntry, more bool, err error) {
	if s.o.Cluster == nil || s.forwarded(r) || q.Status != agent.StatusRunning {
		return here, false, nil
	}
	header, err := w.internalHeader()
	if err != nil {
		return nil, false, err
	}
	if name, given := r.Header[namespaceHeader]; given {
		header[namespaceHeader] = name
	}
	answers, err := s.o.Cluster.Ask(r.Context(), r.URL.RequestURI(), header)
	if err != nil {
		return nil, false, err
	}
	var silent []string
	for _, a := range answers {
		var theirs list[agent.LogEntry]
		if a.Err == nil {
			a.Err = json.Unmarshal(a.Body, &theirs)
		}
		if a.Err != nil {
			s.log.Warn().Err(a.Err).Str("replica", a.Replica).Str("request_id", w.requestID).Msg("another replica did not say what runs there")
			silent = append(silent, a.Replica)
			continue
		}
		here, more = append(here, theirs.Data...), more || theirs.NextCursor != nil
	}
	if len(silent) > 0 {
		w.Header().Set(unansweredHeader, strings.Join(silent, ", "))
	}
	slices.SortFunc(here, func(a, b agent.LogEntry) int { return strings.Compare(b.CallID, a.CallID) })
	return slices.CompactFunc(here, func(a, b agent.LogEntry) bool { return a.CallID == b.CallID }), more, nil
}
