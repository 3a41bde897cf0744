package operator

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// room returns why there is no room for what the actor makes of the artifact.
func (o *Operator) room(ctx context.Context, actor string, before, after *agent.Artifact) error {
	var g growth
	store.ArtifactBytes(after, g.add)
	store.ArtifactBytes(before, g.drop)
	return g.fits(ctx, o, actor)
}

// growth is by how much an operation makes larger what owners have.
type growth struct{ store.Sums }

func (g *growth) add(owner string, b store.Bytes)  { g.Sums.Add(owner, b) }
func (g *growth) drop(owner string, b store.Bytes) { g.Sums.Add(owner, store.Bytes{}.Minus(b)) }

// fits returns why there is no room for what the actor has more, whatever others have less.
func (g *growth) fits(ctx context.Context, o *Operator, actor string) error {
	return o.calls.Room(ctx, actor, g.Of(actor))
}

// roomToRestore returns why nothing can be brought back: how much that is the store alone knows, so that there must be room at all.
func (o *Operator) roomToRestore(ctx context.Context, actor string) error {
	return o.calls.Room(ctx, actor, store.Bytes{Tools: 1, Examples: 1})
}
