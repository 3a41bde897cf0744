package operator

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// room returns an error if the actor has no room for a change of the artifact.
func (o *Operator) room(ctx context.Context, actor string, before, after *agent.Artifact) error {
	var g growth
	store.ArtifactBytes(after, g.add)
	store.ArtifactBytes(before, g.drop)
	return g.fits(ctx, o, actor)
}

// growth is how much more each owner stores after an operation.
type growth struct{ store.Sums }

// add adds bytes that the owner will store.
func (g *growth) add(owner string, b store.Bytes) { g.Sums.Add(owner, b) }

// drop subtracts bytes that the owner stores now.
func (g *growth) drop(owner string, b store.Bytes) { g.Sums.Add(owner, store.Bytes{}.Minus(b)) }

// fits returns an error if the actor has no room for its own growth. What others lose does not count.
func (g *growth) fits(ctx context.Context, o *Operator, actor string) error {
	return o.calls.Room(ctx, actor, g.Of(actor))
}

// roomToRestore returns an error if the actor has no room at all. Only the store knows how much a restore needs.
func (o *Operator) roomToRestore(ctx context.Context, actor string) error {
	return o.calls.Room(ctx, actor, store.Bytes{Tools: 1, Examples: 1})
}
