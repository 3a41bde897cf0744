package api

import (
	"net/http"

	"github.com/recurgentd/recurgentd/internal/agent"
)

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
