package runtime

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// provenFixture returns the call's fixture for proving successors, or nil. If masks replace secrets in the fixture, it
// is used only if the program reproduces its value from it.
func (c *selected) provenFixture(ctx context.Context, g *agent.Generation, a judged) *agent.Fixture {
	f, masked := c.fixture(g, a)
	if f == nil || !c.env.Storage.Fits(ctx, c.session.Owner, store.Bytes{Tools: store.FixtureBytes(f)}) {
		return nil
	}
	if !masked {
		return f
	}
	key := c.role + "." + c.method + " " + g.CodeChecksum + " " + inputHash(f.Args, f.Kwargs)
	if c.env.Irreproducible.has(key) {
		return nil
	}
	if _, reproduced := c.rerun(ctx, &candidate{generation: *g}, *f, 0); reproduced {
		return f
	}
	if ctx.Err() == nil {
		c.env.Irreproducible.add(key)
	}
	return nil
}

// shownArgs returns another call's arguments with secrets masked.
func (c *opened) shownArgs(args []json.RawMessage, kwargs json.RawMessage) ([]json.RawMessage, json.RawMessage) {
	m := c.rules.Call(args, kwargs, nil, nil)
	return m.Args, m.Kwargs
}

// failedProofs caches inputs for which no fixture could be proved, so that not every call tries again. The zero value
// is ready.
type failedProofs struct {
	mu   sync.Mutex
	keys map[string]bool // guarded by mu
}

// maxFailedProofs bounds the cache; it is emptied when full.
const maxFailedProofs = 4096

func (p *failedProofs) has(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[key]
}

func (p *failedProofs) add(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil || len(p.keys) >= maxFailedProofs {
		p.keys = map[string]bool{}
	}
	p.keys[key] = true
}
