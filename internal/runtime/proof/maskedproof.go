package proof

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/store"
)

// ProvenFixture returns the call's fixture for proving successors, or nil. If masks replace secrets in the fixture, it
// is used only if the program reproduces its value from it.
func (c *Against) ProvenFixture(ctx context.Context, g *agent.Generation, a judge.Judged) *agent.Fixture {
	f, masked := fixtureOf(&c.Selection, g, a)
	if f == nil || !c.Env.Storage.Fits(ctx, c.Session.Owner, store.Bytes{Tools: store.FixtureBytes(f)}) {
		return nil
	}
	if !masked {
		return f
	}
	key := c.Role + "." + c.Method + " " + g.CodeChecksum + " " + judge.InputHash(f.Args, f.Kwargs)
	if c.Env.Irreproducible.Has(key) {
		return nil
	}
	if _, reproduced := c.Rerun(ctx, g, *f, 0); reproduced {
		return f
	}
	if ctx.Err() == nil {
		c.Env.Irreproducible.Add(key)
	}
	return nil
}
