// Package env holds the parts of the daemon that every call uses: options, the store of a namespace, and caches of
// facts about programs and contracts. It knows nothing about calls.
package env

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/classify"
	"github.com/recurgentd/recurgentd/internal/runtime/programs"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
)

// An Env holds the parts of the daemon that every call uses: its options, the store of its namespace, and the caches of
// programs and contracts. Only the caches change once calls run.
type Env struct {
	Options

	Store store.Namespace
	Level sandbox.Level // as observed at startup

	Contracts      Contracts
	Facts          programs.Facts
	Words          classify.Words
	Intact         programs.Intact
	Irreproducible FailedProofs // failed proofs of calls with secrets
	Commits        sharedDeadline
}

// Owner returns the owner of calls made with the access token of that name.
func (e *Env) Owner(name string) agent.Owner {
	return agent.Owner{Namespace: e.Namespace, Name: name}
}

// Within returns a context for work on the store that neither a leaving client nor a shutdown may cut short. It ends
// after one to two commit timeouts.
func (e *Env) Within() context.Context { return e.Commits.context(e.CommitTimeout) }

// Records returns the session's records that match the query, oldest first, as a JSON array.
func (e *Env) Records(ctx context.Context, session string, q store.HistoryQuery) (json.RawMessage, error) {
	p, err := e.Store.History(ctx, session, q)
	if err != nil {
		return nil, err
	}
	if q.Desc {
		slices.Reverse(p.Records)
	}
	return jsonenc.Array(p.Records), nil
}
