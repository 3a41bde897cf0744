package forge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Values that all replicas must agree on.
const (
	flightTTL     = 15 * time.Second // how long a flight outlives a replica that died during it
	candidateLife = time.Minute      // roughly how long calls run a candidate before it is stored
	MaxCandidate  = 4 << 20          // bytes of an encoded candidate
)

// errFlightLost ends the forge of a replica that lost its lease: another replica is forging by then.
var errFlightLost = errors.New("another replica forges the program by now")

// A SharedCandidate is a forged program that a replica offers to the others: only the model's reply and its time.
// Everything else is derived again, because replicas do not trust each other's checks.
type SharedCandidate struct {
	Reply     provider.Reply `json:"reply"`
	CreatedAt time.Time      `json:"created_at"`
	Owner     string         `json:"owner,omitempty"` // owner of the call that requested it
}

// writeShared writes a program that other replicas may need. One replica asks the model and offers its reply, and the
// others check that reply. A replica that loses its lease gives up and takes the reply of the next one.
func (w *writer) writeShared(ctx context.Context, key string, q Request) flightResult {
	for {
		lease, err := w.Env.Store.Lease(ctx, key, store.LeaseOptions{TTL: flightTTL, Wait: true})
		if err != nil {
			return w.write(ctx, q) // at worst, one model request too many
		}
		res := w.writeLeased(ctx, lease, key, q)
		lease.Release()
		if ctx.Err() != nil || !res.lost {
			return res
		}
		w.result.Failure = nil // its usage is kept
	}
}

// SharedKey returns the key under which replicas offer each other the candidate for the request.
func SharedKey(q *Request) string {
	sum := sha256.Sum256([]byte(flightKey(q)))
	return "flight:" + hex.EncodeToString(sum[:])
}

// writeLeased takes the program that another replica left, or asks the model for one while the lease is held.
func (w *writer) writeLeased(ctx context.Context, lease store.Lease, key string, q Request) flightResult {
	if cand := w.left(ctx, key, q); cand != nil {
		w.result.Candidate, w.result.Foreign = cand, true
		return w.result
	}
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() { // ends with this function
		select {
		case <-lease.Lost():
			cancel(errFlightLost)
		case <-stop:
		}
	}()
	res := w.write(held, q)
	lost := errors.Is(context.Cause(held), errFlightLost)
	switch {
	case res.Candidate == nil:
		res.lost = lost
	case res.Candidate.Existing == nil && !lost:
		w.leave(ctx, key, res.Candidate)
	}
	return res
}

// leave offers a candidate to the other replicas until the candidate is stored or its calls have ended.
func (w *writer) leave(ctx context.Context, key string, cand *Candidate) {
	created := cand.Generation.CreatedAt
	if cand.Keeps {
		created = cand.KeptAt
	}
	text, err := json.Marshal(SharedCandidate{w.reply, created, cand.Generation.Owner})
	if err == nil && len(text) <= MaxCandidate {
		err = w.Env.Store.PutCandidate(ctx, key, text, candidateLife)
	}
	if err != nil {
		w.Env.Logger.Warn().Err(err).Str("role", w.Role).Str("method",
			w.Method).Msg("a forged program could not be shown to the other replicas: they may forge their own")
		return
	}
	env := w.Env
	cand.shared = true
	cand.withdraw = func() {
		if err := env.Store.PutCandidate(env.Within(), key, []byte("null"), time.Millisecond); err != nil {
			env.Logger.Warn().Err(err).Msg("a program that nobody stored is shown to other replicas for a minute")
		}
	}
}

// left returns the candidate that another replica left, after checking it with the gate. It returns nil if there is
// none to use.
func (w *writer) left(ctx context.Context, key string, q Request) *Candidate {
	text, err := w.Env.Store.Candidate(ctx, key)
	if err != nil || len(text) > MaxCandidate {
		return nil
	}
	var shared SharedCandidate
	if json.Unmarshal(text, &shared) != nil || shared.Reply.Code == "" && !shared.Reply.Unchanged ||
		shared.CreatedAt.IsZero() {
		return nil
	}
	if shared.Reply.Unchanged {
		if !q.mayKeep() {
			return nil
		}
		cand := w.rechecked(q, shared.CreatedAt)
		cand.shared = true
		return cand
	}
	shared.Reply.Usage = agent.Usage{}
	program, facts, refused := w.gate(ctx, q, shared.Reply)
	if generationOf(w.Artifact, program.Checksum, shared.CreatedAt) != nil {
		return nil // this call has already examined it and needs another program
	}
	var takes *agent.Interface
	if refused == nil {
		takes, refused = w.describe(q, shared.Reply, facts, false)
	}
	if refused != nil {
		w.Env.Logger.Warn().Str("role", w.Role).Str("method", w.Method).Str("checksum",
			program.Checksum).Err(fmt.Errorf("%s: %s", refused.Type, refused.Message)).
			Msg("the program that another replica left does not pass the gate here")
		return nil
	}
	w.before = proof.ReachBefore(ctx, &w.Selection, q.Predecessor)
	cand := w.candidate(q, shared.Reply, program, facts, takes)
	cand.shared, cand.Generation.CreatedAt, cand.Generation.Owner = true, shared.CreatedAt, shared.Owner
	return cand
}

// AdoptedElsewhere returns the generation that another replica made from the candidate, or nil.
func (c *Candidate) AdoptedElsewhere(now *agent.Artifact) *agent.Generation {
	if !c.shared {
		return nil
	}
	return generationOf(now, c.Generation.CodeChecksum, c.Generation.CreatedAt)
}

// generationOf returns the artifact's generation with that checksum and creation time, or nil.
func generationOf(a *agent.Artifact, checksum string, created time.Time) *agent.Generation {
	if a == nil {
		return nil
	}
	for _, g := range a.Generations {
		if g.CodeChecksum == checksum && g.CreatedAt.Equal(created) {
			return g
		}
	}
	return nil
}
