package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/store"
)

// What replicas agree on about flights.
const (
	flightTTL     = 15 * time.Second // how long a flight outlives a replica that died in it
	candidateLife = time.Minute      // about how long calls run a candidate before it is stored
	maxCandidate  = 4 << 20          // bytes of an encoded candidate
)

// errFlightLost ends the forge of a replica whose lease is lost: another one forges by now.
var errFlightLost = errors.New("another replica forges the program by now")

// sharedCandidate is what a replica leaves for others of a program that a model wrote: what the model answered, and when. Nothing else in it
// would be believed.
type sharedCandidate struct {
	Reply     provider.Reply `json:"reply"`
	CreatedAt time.Time      `json:"created_at"`
	Owner     string         `json:"owner,omitempty"` // whose call asked for it
}

// writeShared is write where other replicas may need the same program: of all replicas one asks the model, the others check what it leaves for
// them. Who loses its lease meanwhile gives up, and takes what the next one leaves.
func (w *writer) writeShared(ctx context.Context, key string, q forgeRequest) forgeResult {
	key = sharedKeyOf(key)
	for {
		lease, err := w.r.store.Lease(ctx, key, store.LeaseOptions{TTL: flightTTL, Wait: true})
		if err != nil {
			return w.write(ctx, q) // at the worst it is one request too many
		}
		res := w.writeLeased(ctx, lease, key, q)
		lease.Release()
		if ctx.Err() != nil || !res.lost {
			return res
		}
		w.res.failure = nil // what it cost stays
	}
}

// sharedKeyOf names a flight among replicas.
func sharedKeyOf(flight string) string {
	sum := sha256.Sum256([]byte(flight))
	return "flight:" + hex.EncodeToString(sum[:])
}

// writeLeased takes the program that another replica left, or has the model write one while the lease is held.
func (w *writer) writeLeased(ctx context.Context, lease store.Lease, key string, q forgeRequest) forgeResult {
	if cand := w.left(ctx, key, q); cand != nil {
		w.res.candidate, w.res.foreign = cand, true
		return w.res
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
	case res.candidate == nil:
		res.lost = lost
	case res.candidate.existing == nil && !lost:
		w.leave(ctx, key, res.candidate)
	}
	return res
}

// leave shows a candidate to the other replicas, until it is stored or its calls have ended without that.
func (w *writer) leave(ctx context.Context, key string, cand *candidate) {
	created := cand.generation.CreatedAt
	if cand.keeps {
		created = cand.keptAt
	}
	text, err := json.Marshal(sharedCandidate{w.reply, created, cand.generation.Owner})
	if err == nil && len(text) <= maxCandidate {
		err = w.r.store.PutCandidate(ctx, key, text, candidateLife)
	}
	if err != nil {
		w.r.o.Logger.Warn().Err(err).Str("role", w.role).Str("method",
			w.method).Msg("a forged program could not be shown to the other replicas: they may forge their own")
		return
	}
	r := w.r
	cand.shared = true
	cand.withdraw = func() {
		if err := r.store.PutCandidate(r.within(), key, []byte("null"), time.Millisecond); err != nil {
			r.o.Logger.Warn().Err(err).Msg("a program that nobody stored is shown to other replicas for a minute")
		}
	}
}

// left returns the candidate that another replica left, once the gate has passed it here; nil when there is none to be had.
func (w *writer) left(ctx context.Context, key string, q forgeRequest) *candidate {
	text, err := w.r.store.Candidate(ctx, key)
	if err != nil || len(text) > maxCandidate {
		return nil
	}
	var shared sharedCandidate
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
	if generationOf(w.artifact, program.Checksum, shared.CreatedAt) != nil {
		return nil // this call looked at it, and needs another one
	}
	var takes *agent.Interface
	if refused == nil {
		takes, refused = w.describe(q, shared.Reply, facts, false)
	}
	if refused != nil {
		w.r.o.Logger.Warn().Str("role", w.role).Str("method", w.method).Str("checksum",
			program.Checksum).Err(fmt.Errorf("%s: %s", refused.Type, refused.Message)).
			Msg("the program that another replica left does not pass the gate here")
		return nil
	}
	w.before = w.reachBefore(ctx, q.predecessor)
	cand := w.candidate(q, shared.Reply, program, facts, takes)
	cand.shared, cand.generation.CreatedAt, cand.generation.Owner = true, shared.CreatedAt, shared.Owner
	return cand
}

// adoptedElsewhere returns the generation that another replica has made of the candidate, or nil.
func (c *candidate) adoptedElsewhere(now *agent.Artifact) *agent.Generation {
	if !c.shared {
		return nil
	}
	return generationOf(now, c.generation.CodeChecksum, c.generation.CreatedAt)
}

// generationOf returns the generation that was made of a program which a model wrote at that time, or nil.
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
