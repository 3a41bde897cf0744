package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/cluster"
)

// systemView is the state of the daemon across all namespaces. Counts are since its start.
type systemView struct {
	Replica   string         `json:"replica,omitempty"` // replica that the numbers are of; "" without a cluster
	StartedAt time.Time      `json:"started_at"`
	Ready     bool           `json:"ready"` // whether it takes calls
	Calls     systemCalls    `json:"calls"`
	Runners   systemRunners  `json:"runners"`
	Native    map[string]int `json:"native"` // always empty; earlier versions counted compiled programs here
	// requests to the model, by result; results that never happened are absent
	Provider map[string]int64 `json:"provider"`
	Store    systemStore      `json:"store"`
	Model    *modelView       `json:"model,omitempty"` // only for the scope operate, and only if a model is configured
}

type systemCalls struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"` // for their turn
}

// systemRunners counts the processes that run programs.
type systemRunners struct {
	Busy           int64            `json:"busy"`
	Warm           int64            `json:"warm"` // reserved for a program
	Idle           int64            `json:"idle"`
	WarmBytes      int64            `json:"warm_bytes"`
	Started        int64            `json:"started"`
	EngineFailures int64            `json:"engine_failures"`
	Ended          map[string]int64 `json:"ended"` // killed by the daemon or dead, by reason
}

// systemStore is the state of the store.
type systemStore struct {
	Sessions int64          `json:"sessions"`
	Tools    int64          `json:"tools"`
	Programs map[string]int `json:"programs"` // by lifecycle state
	Commits  int64          `json:"commits"`
	Fsyncs   int64          `json:"fsyncs"`
	Bytes    int64          `json:"journal_bytes"`
	// entries of the journal that the files do not contain yet
	Lag         int64 `json:"checkpoint_lag_entries"`
	Quarantined int64 `json:"quarantined_files"`
}

// getSystem returns the current values of what /metrics counts. Sources that are not registered are zero.
func (s *server) getSystem(w *reply, r *http.Request) error {
	if sent, err := s.ofReplica(w, r); sent || err != nil {
		return err
	}
	from := s.o.Metrics.Sources()
	v := systemView{StartedAt: s.started.UTC(), Ready: s.o.Namespaces.Ready() == nil, Native: map[string]int{},
		Provider: s.o.Metrics.ProviderRequests(),
		Runners:  systemRunners{Ended: map[string]int64{}}, Store: systemStore{Programs: map[string]int{}}}
	if s.o.Cluster != nil {
		v.Replica = s.o.Cluster.ID()
	}
	if from.Calls != nil {
		v.Calls.Running, v.Calls.Waiting = from.Calls()
	}
	if from.Runners != nil {
		n := from.Runners()
		v.Runners = systemRunners{n.Busy, n.Warm, n.Idle, n.WarmBytes, n.Spawned, n.EngineFailures, notNil(n.Killed)}
	}
	if from.Store != nil {
		n := from.Store()
		v.Store = systemStore{n.Sessions, n.Tools, v.Store.Programs, n.Commits, n.Fsyncs, n.JournalBytes,
			n.CheckpointLag, n.Quarantined}
	}
	if from.Artifacts != nil {
		v.Store.Programs = notNil(from.Artifacts())
	}
	if status, asked := w.run.ModelStatus(); asked && w.who.Scopes.Has(access.Operate) {
		v.Model = viewOfModel(status)
	}
	return s.sendNow(w, http.StatusOK, v)
}

// ofReplica forwards the request if the parameter replica names another replica. It reads the whole query, so the
// operation can have no other parameters.
func (s *server) ofReplica(w *reply, r *http.Request) (sent bool, err error) {
	q := readQuery(r)
	id := q.text("replica")
	if err := q.err(); err != nil || id == "" {
		return false, err
	}
	if s.o.Cluster != nil && id == s.o.Cluster.ID() {
		return false, nil
	}
	// a forwarded request must not be forwarded again
	if s.o.Cluster != nil && !cluster.Forwarded(r.Context()) {
		all, err := s.o.Cluster.Replicas(r.Context())
		if err != nil {
			return false, err
		}
		for _, x := range all {
			if x.ID == id {
				return true, s.forward(w, r, x.Address, false)
			}
		}
	}
	return false, fault(codeNotFound, "there is no replica "+strconv.Quote(id), "GET /v1/replicas lists them")
}

// notNil returns m, or an empty map, which clients see as {} instead of null.
func notNil[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
