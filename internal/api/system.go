package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cluster"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
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

// modelView is the recent state of the daemon's model.
type modelView struct {
	Name      string           `json:"name"`
	BaseURL   string           `json:"base_url"` // without secrets
	Profile   provider.Profile `json:"profile"`
	LastError *modelFailure    `json:"last_error"`
	LastOKAt  *time.Time       `json:"last_ok_at"`
}

type modelFailure struct {
	At      time.Time `json:"at"`
	Status  int       `json:"status"` // HTTP status, or 0 if there was no reply
	Message string    `json:"message"`
}

// viewOfModel converts the model's status. Absent values are null.
func viewOfModel(s provider.Status) *modelView {
	v := &modelView{Name: s.Model, BaseURL: s.BaseURL, Profile: s.Profile}
	if f := s.LastError; f != nil {
		v.LastError = &modelFailure{f.At.UTC(), f.Status, f.Message}
	}
	if !s.LastOK.IsZero() {
		at := s.LastOK.UTC()
		v.LastOKAt = &at
	}
	return v
}

// modelCheck is the result of asking the model for one test program.
type modelCheck struct {
	OK     bool        `json:"ok"`
	Steps  []modelStep `json:"steps"`
	Usage  agent.Usage `json:"usage"`
	TookMs int64       `json:"took_ms"`
	Model  *modelView  `json:"model"`
}

type modelStep struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// checkModel asks the model for a program in the same way as calls do. It spends tokens of the principal.
func (s *server) checkModel(w *reply, r *http.Request) error {
	c, asked, err := w.run.CheckModel(r.Context(), w.owner)
	switch {
	case err != nil:
		return err
	case !asked:
		return fault(codeNotFound, "no model is asked: programs come from a recording",
			"Start the daemon with OPENAI_API_KEY or OPENAI_BASE_URL.")
	}
	status, _ := w.run.ModelStatus()
	v := modelCheck{OK: c.OK, Steps: make([]modelStep, len(c.Steps)), Usage: c.Usage, TookMs: c.Took.Milliseconds(),
		Model: viewOfModel(status)}
	for i, step := range c.Steps {
		v.Steps[i] = modelStep(step)
	}
	return s.send(w, http.StatusOK, v)
}

// replicaView is a replica in a list.
type replicaView struct {
	ID            string `json:"id"`
	Address       string `json:"address"`
	Version       string `json:"version"`
	StartedAt     string `json:"started_at"`
	ExpiresAt     string `json:"expires_at"`
	SessionsOwned int64  `json:"sessions_owned"`
	CallsInFlight int64  `json:"calls_in_flight"`
	ForwardedIn   int64  `json:"forwarded_in"`
	ForwardedOut  int64  `json:"forwarded_out"`
}

// listReplicas lists the replicas that share the store. The list is empty for a daemon without a cluster.
func (s *server) listReplicas(w *reply, r *http.Request) error {
	if err := readQuery(r).err(); err != nil {
		return err
	}
	l := struct {
		Data []replicaView `json:"data"`
	}{[]replicaView{}}
	if s.o.Cluster == nil {
		return s.sendNow(w, http.StatusOK, l)
	}
	all, err := s.o.Cluster.Replicas(r.Context())
	if err != nil {
		return err
	}
	for _, x := range all {
		l.Data = append(l.Data, replicaView{ID: x.ID, Address: x.Address, Version: x.Version,
			StartedAt: agent.FormatTime(x.StartedAt), ExpiresAt: agent.FormatTime(x.ExpiresAt),
			SessionsOwned: x.SessionsOwned, CallsInFlight: x.CallsInFlight, ForwardedIn: x.ForwardedIn,
			ForwardedOut: x.ForwardedOut})
	}
	return s.sendNow(w, http.StatusOK, l)
}
