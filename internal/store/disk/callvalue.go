package disk

import (
	"context"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// Previews is part of store.Namespace.
func (p *calls) Previews(ctx context.Context, callIDs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, id := range callIDs {
		var v valueLine
		p.n.mu.RLock()
		c := p.byID[id]
		if c != nil {
			v = c.value
		}
		p.n.mu.RUnlock()
		if c == nil {
			if err := p.findValue(id, &v); err != nil {
				return nil, err
			}
		}
		if p.expired(&v) {
			continue
		}
		if text := store.Preview(v.Outcome); text != "" {
			out[id] = text
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return out, nil
}

// findValue reads the stored value of a call. It leaves v unchanged if there is none.
func (p *calls) findValue(callID string, v *valueLine) error {
	return p.values.Find(jsonl.Key(callID), func(line []byte) bool {
		return jsonl.Member(line, "call_id") == callID && json.Unmarshal(line, v) == nil
	})
}

// expired reports whether the policy no longer allows the value to be read.
func (p *calls) expired(v *valueLine) bool {
	hours := p.n.policies.current().Retention.ValueHours
	return hours > 0 && p.n.now().Sub(time.UnixMilli(v.At)) >= time.Duration(hours)*time.Hour
}

// withValue adds the outcome and the effects to the call, unless they have expired.
func (p *calls) withValue(c store.Call, v *valueLine) (store.Call, error) {
	hours := p.n.policies.current().Retention.ValueHours
	store.ForgetDebug(&c.Log, hours, p.n.now())
	if v.Outcome == nil && v.Effects == nil || p.expired(v) {
		return c, nil
	}
	if v.Outcome != nil {
		c.Outcome = &agent.Outcome{}
		if err := json.Unmarshal(v.Outcome, c.Outcome); err != nil {
			return store.Call{}, err
		}
	}
	c.Effects = v.Effects
	return c, nil
}
