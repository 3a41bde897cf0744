package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// unansweredHeader lists the replicas that did not report their running calls.
const unansweredHeader = "Recurgent-Unanswered"

// elsewhere is the result of asking the other replicas for their running calls.
type elsewhere struct {
	calls  []agent.LogEntry
	more   bool     // some replica has more calls than it returned
	silent []string // replicas that did not answer
}

// callsElsewhere asks the other replicas for uri, as the client's principal, and returns the calls they run. A
// replica that does not answer is listed in silent and logged; it is not an error.
func (s *server) callsElsewhere(w *reply, r *http.Request, uri string) (out elsewhere, err error) {
	header, err := w.internalHeader()
	if err != nil {
		return out, err
	}
	// the other replicas must act in the same namespace
	if name, given := r.Header[namespaceHeader]; given {
		header[namespaceHeader] = name
	}
	answers, err := s.o.Cluster.Ask(r.Context(), uri, header)
	if err != nil {
		return out, err
	}
	for _, a := range answers {
		var theirs list[agent.LogEntry]
		if a.Err == nil {
			a.Err = json.Unmarshal(a.Body, &theirs)
		}
		if a.Err != nil {
			s.log.Warn().Err(a.Err).Str("replica", a.Replica).Str("request_id",
				w.requestID).Msg("another replica did not say what runs there")
			out.silent = append(out.silent, a.Replica)
			continue
		}
		out.calls, out.more = append(out.calls, theirs.Data...), out.more || theirs.NextCursor != nil
	}
	return out, nil
}

// withCallsElsewhere merges the running calls of other replicas into here, newest first. It changes nothing unless
// the query asks for running calls. more reports whether a replica has more calls than it returned.
func (s *server) withCallsElsewhere(w *reply, r *http.Request, q *store.CallQuery,
	here []agent.LogEntry) (entries []agent.LogEntry, more bool, err error) {
	if s.o.Cluster == nil || s.forwarded(r) || q.Status != agent.StatusRunning {
		return here, false, nil
	}
	there, err := s.callsElsewhere(w, r, r.URL.RequestURI())
	if err != nil {
		return nil, false, err
	}
	if len(there.silent) > 0 {
		w.Header().Set(unansweredHeader, strings.Join(there.silent, ", "))
	}
	here = append(here, there.calls...)
	slices.SortFunc(here, func(a, b agent.LogEntry) int { return strings.Compare(b.CallID, a.CallID) })
	// the two reads are not simultaneous, so a call may be in both lists
	return slices.CompactFunc(here, func(a, b agent.LogEntry) bool { return a.CallID == b.CallID }), there.more, nil
}
