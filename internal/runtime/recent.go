package runtime

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/store"
)

// correction links a call to the call that it corrects. The zero value means none.
type correction struct{ signal, reference string }

// recentCalls remembers the last depth-0 call of each session, role and method. It keeps two generations of maps and
// drops the older one when the younger is full. The zero value is ready.
type recentCalls struct {
	once sync.Once
	seed maphash.Seed // set once

	mu         sync.Mutex
	since      time.Time                // start of the first observed call; guarded by mu
	young, old map[recentKey]recentCall // guarded by mu
}

type recentKey struct{ session, role, method string }

// A recentCall is what the detector of corrections needs to know about a call. Its arguments are masked and bounded.
type recentCall struct {
	id       string
	at       time.Time
	args     []json.RawMessage
	kwargs   json.RawMessage
	troubled bool // the call ended weak or in an error, or a nested call ended weak
}

func (rc recentCall) turn() evolve.Turn {
	return evolve.Turn{At: rc.at, Args: rc.args, Kwargs: rc.kwargs, Troubled: rc.troubled}
}

// Bounds of one generation's calls, and of the bytes kept of one call's arguments.
const (
	maxRecentCalls = 16 << 10
	maxRecentArgs  = 4 << 10
)

// observe returns what the call corrects, and remembers the call for the next one.
func (rc *recentCalls) observe(c *answered, weak []string) correction {
	if c.Depth > 0 || c.programSource() == agent.SourceNone {
		return correction{}
	}
	o := c.outcome
	key := recentKey{c.Session.ID, c.Role, c.Method}
	now := recentCall{id: c.ID, at: c.Started, args: c.Shown().Args, kwargs: c.Shown().Kwargs, troubled: !o.OK() ||
		len(weak) > 0 || c.WeakBelow.Load() > 0}
	now.args, now.kwargs = rc.remembered(now.args, now.kwargs)
	before, known, since := rc.swap(key, now)
	p := c.Policy.UserCorrection
	if !known && c.Session.HistorySize > 0 && (c.Env.Shared ||
		now.at.Sub(since) <= time.Duration(p.WindowSeconds)*time.Second) {
		before, known = c.beforeRestart() // the previous call may have run before a restart, or on another replica
	}
	if !known {
		return correction{}
	}
	signal := evolve.Correction(before.turn(), now.turn(), slices.Contains(c.Policy.DispatchMethods, c.Method), p)
	if signal == "" {
		return correction{}
	}
	return correction{signal, before.id}
}

// swap replaces the previous call and returns it, with the time since which calls are remembered.
func (rc *recentCalls) swap(key recentKey, now recentCall) (before recentCall, known bool, since time.Time) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if rc.since.IsZero() {
		rc.since = now.at
	}
	if before, known = rc.young[key]; !known {
		before, known = rc.old[key]
	}
	if rc.young == nil || len(rc.young) >= maxRecentCalls {
		rc.old, rc.young = rc.young, map[recentKey]recentCall{}
	}
	rc.young[key] = now
	return before, known, rc.since
}

// beforeRestart reads the previous call from the session's records.
func (c *answered) beforeRestart() (recentCall, bool) {
	ctx := c.Env.Within()
	page, err := c.Env.Store.History(ctx, c.Session.ID, store.HistoryQuery{Limit: 1, Desc: true, Depth0: true,
		Role: c.Role, Method: c.Method,
		Since: c.Started.Add(-time.Duration(c.Policy.UserCorrection.WindowSeconds) * time.Second)})
	if err != nil || len(page.Records) == 0 {
		return recentCall{}, false
	}
	var rec agent.Record
	if json.Unmarshal(page.Records[0], &rec) != nil {
		return recentCall{}, false
	}
	at, err := time.Parse(time.RFC3339, rec.Timestamp)
	if err != nil {
		return recentCall{}, false
	}
	was := recentCall{id: rec.CallID, at: at, troubled: rec.OutcomeSummary.Status != agent.StatusOK}
	was.args, was.kwargs = c.r.recent.remembered(rec.Args, rec.Kwargs)
	if logged, err := c.Env.Store.Call(ctx, rec.CallID); err == nil &&
		(logged.Log.WeakSuccess || logged.Log.WeakNestedCalls > 0) {
		was.troubled = true
	}
	return was, true
}

// remembered returns what is kept of a call's arguments: short ones as they are, otherwise their beginning and a hash,
// which still distinguishes different arguments.
func (rc *recentCalls) remembered(args []json.RawMessage, kwargs json.RawMessage) ([]json.RawMessage, json.RawMessage) {
	size := len(kwargs)
	for _, a := range args {
		size += len(a)
	}
	if size <= maxRecentArgs {
		return args, kwargs
	}
	rc.once.Do(func() { rc.seed = maphash.MakeSeed() })
	var h maphash.Hash
	h.SetSeed(rc.seed)
	begin := make([]byte, 0, maxRecentArgs)
	for _, a := range append(slices.Clip(args), kwargs) {
		_, _ = h.Write(a) // a hash takes everything
		_ = h.WriteByte(0)
		begin = append(begin, a[:min(len(a), maxRecentArgs-len(begin))]...)
		if len(begin) < maxRecentArgs {
			begin = append(begin, ' ')
		}
	}
	return []json.RawMessage{begin}, json.RawMessage(strconv.FormatUint(h.Sum64(), 10))
}
