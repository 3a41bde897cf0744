package runtime

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
)

// correction links a call to the one that it corrects.
type correction struct{ signal, reference string }

// recentCalls remembers the last depth-0 call of each session, role and method for as long as it may be corrected.
// The zero value is ready.
type recentCalls struct {
	mu   sync.Mutex
	last map[recentKey]recentCall // guarded by mu
}

type recentKey struct{ session, role, method string }

type recentCall struct {
	id       string
	at       time.Time
	args     []json.RawMessage
	kwargs   json.RawMessage
	troubled bool // it ended weak or in error
}

// look tells whether the call corrects the one before it (decision 11), and remembers it for the next.
func (rc *recentCalls) look(c *call, o agent.Outcome) correction {
	const most = 4096
	if c.depth > 0 || c.found.source == agent.SourceNone {
		return correction{}
	}
	key := recentKey{c.session.ID, c.role, c.method}
	now := recentCall{id: c.id, at: c.started, args: c.maskedArgs, kwargs: c.maskedKwargs, troubled: !o.OK() || len(c.found.weak) > 0}
	rc.mu.Lock()
	before, ok := rc.last[key]
	if rc.last == nil || len(rc.last) >= most {
		rc.last = map[recentKey]recentCall{}
	}
	rc.last[key] = now
	rc.mu.Unlock()
	if !ok {
		return correction{}
	}
	p := c.p.UserCorrection
	signal := evolve.Correction(
		evolve.Turn{At: before.at, Args: before.args, Kwargs: before.kwargs, Troubled: before.troubled},
		evolve.Turn{At: now.at, Args: now.args, Kwargs: now.kwargs},
		slices.Contains(c.p.DispatchMethods, c.method), p)
	if signal == "" {
		return correction{}
	}
	return correction{signal, before.id}
}
