package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// replica is one of the daemons that share a store, in the form of the REST interface.
type replica struct {
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

func replicasCommand(sh Shell) *cobra.Command {
	return operatorCommand(sh, "recurgentd", operation{use: "replicas", short: "List the daemons that share a store",
		example: "--output json", everywhere: true,
		long: `List the daemons that share a store, with the sessions that each owns and the requests that it forwarded to their
owners (OUT) and others to it (IN). Where OUT is large beside the calls, the balancer should send a session always to
the same replica. A daemon that has its store to itself lists none. Where tokens are configured this needs one with the
scope operate.`,
		run: (*errand).listReplicas})
}

func (t *errand) listReplicas() error {
	all := struct {
		Data []replica `json:"data"`
	}{[]replica{}}
	if err := t.c.Get(t.ctx, "/v1/replicas", &all); err != nil {
		return err
	}
	if !t.out.human() {
		return t.out.value(all)
	}
	if len(all.Data) == 0 {
		return t.out.line("this daemon has its store to itself")
	}
	var rows [][]string
	for _, r := range all.Data {
		count := func(n int64) string { return strconv.FormatInt(n, 10) }
		address := r.Address
		if address == "" {
			address = "none"
		}
		rows = append(rows, []string{r.ID, text.Cell(address), text.Cell(r.Version), count(r.SessionsOwned),
			count(r.CallsInFlight), count(r.ForwardedIn), count(r.ForwardedOut), r.StartedAt})
	}
	return t.table("ID ADDRESS VERSION SESSIONS CALLS IN OUT STARTED", rows)
}
