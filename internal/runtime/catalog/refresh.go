package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

func (p purposes) equal(q purposes) bool {
	return p.role == q.role && p.to == q.to && maps.Equal(p.methods, q.methods)
}

// Revision returns a number that differs from an earlier one where the listed tools have changed in between.
func (c *Catalog) Revision(ctx context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.refresh(ctx)
	return c.revision, err
}

// refresh reads what has changed. The caller holds mu.
func (c *Catalog) refresh(ctx context.Context) error {
	dirty, all, err := c.follows.Take()
	if err != nil {
		return err
	}
	if p := c.o.Policy(); p != c.policy { // not by the store's feed, which is ahead of those who decide by the policy
		c.policy, all = p, true
	}
	if len(dirty) == 0 && !all {
		return nil
	}
	changed, err := c.read(ctx, dirty, all)
	if err != nil {
		c.follows.GiveBack(dirty, all)
		return err
	}
	if changed {
		c.list()
	}
	return nil
}

// read brings known up to date, and reports whether anything differs.
func (c *Catalog) read(ctx context.Context, dirty map[store.Target]bool, all bool) (changed bool, err error) {
	if all {
		return true, c.readAll(ctx)
	}
	for m := range dirty {
		if m.Method != "" {
			continue
		}
		now, err := c.purposesOf(ctx, m.Role)
		if err != nil {
			return false, err
		}
		if now.equal(c.roles[m.Role]) {
			continue
		}
		c.roles[m.Role] = now
		for other := range c.known {
			if other.Role == m.Role {
				dirty[store.Target{Role: other.Role, Method: other.Name}] = true
			}
		}
	}
	for m := range dirty {
		if m.Method == "" {
			continue
		}
		a, err := c.store.Artifact(ctx, m.Role, m.Method)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		changed = c.put(Method{m.Role, m.Method}, a) || changed
	}
	return changed, nil
}

// readAll reads every method anew.
func (c *Catalog) readAll(ctx context.Context) error {
	c.roles, c.known = map[string]purposes{}, map[Method]*entry{}
	everything, err := c.store.Stale(ctx, time.Unix(1<<40, 0)) // not used since a time that is yet to come
	if err != nil {
		return err
	}
	for _, t := range everything {
		if _, read := c.roles[t.Role]; !read {
			if c.roles[t.Role], err = c.purposesOf(ctx, t.Role); err != nil {
				return err
			}
		}
		if t.Method == "" {
			continue
		}
		a, err := c.store.Artifact(ctx, t.Role, t.Method)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		c.put(Method{t.Role, t.Method}, a)
	}
	return nil
}

func (c *Catalog) purposesOf(ctx context.Context, role string) (purposes, error) {
	t, err := c.store.Tool(ctx, role)
	if errors.Is(err, store.ErrNotFound) {
		return purposes{}, nil
	}
	return purposesIn(&t), err
}

func purposesIn(t *agent.Tool) purposes {
	p := purposes{role: t.Purpose, to: t.Audience()}
	for name, k := range t.Methods {
		if k.Purpose != "" {
			if p.methods == nil {
				p.methods = map[string]string{}
			}
			p.methods[name] = k.Purpose
		}
	}
	return p
}

// put makes the method's entry from its artifact, which is nil when there is none, and reports whether it differs.
func (c *Catalog) put(m Method, a *agent.Artifact) (changed bool) {
	was, had := c.known[m]
	if a == nil || a.Current() == nil {
		delete(c.known, m)
		return had
	}
	now, all := c.sourceOf(m, a)
	if had && now.same(&was.of) { // as most often, when a call was counted
		return false
	}
	e := &entry{of: now}
	for _, d := range all {
		e.shown = append(e.shown, shown{d.To, describe(m, d, now.serving, now.purposes)})
	}
	if had && now.why == was.of.why && slices.EqualFunc(e.shown, was.shown,
		func(a, b shown) bool { return a.to == b.to && a.tool.same(b.tool) }) {
		e.name, e.shown = was.name, was.shown
		c.known[m] = e
		return false
	}
	c.known[m] = e
	return true
}

// A source is what an entry is made of.
type source struct {
	serving  *agent.Generation
	why      string // nobody is offered the method; "" where it is listed
	purposes purposes
	shown    []reading
}

// A reading is an interface that is shown, and to whom.
type reading struct {
	generation string
	takes      *agent.Interface
	to         agent.Audience
}

func (s *source) same(t *source) bool {
	return s.why == t.why && s.serving.ID == t.serving.ID && slices.Equal(s.shown, t.shown) &&
		s.purposes.equal(t.purposes)
}

func (c *Catalog) sourceOf(m Method, a *agent.Artifact) (s source, all []agent.Description) {
	g, why := c.o.Serving(a)
	s = source{serving: g, why: strings.ReplaceAll(why, "_", " "), purposes: c.roles[m.Role]}
	if g == nil {
		s.serving = a.Current()
	} else {
		s.why = c.exposes(a, g)
	}
	all = a.Descriptions(s.serving, s.purposes.to.All)
	for i := range all {
		d := &all[i]
		if d.Generation != nil && !d.Generation.Keeps(agent.FingerprintNone) {
			d.Generation = nil // an agent's call, which has no contract, does not get it
		}
		r := reading{to: d.To}
		if d.Generation != nil {
			r.generation, r.takes = d.Generation.ID, d.Generation.Interface
		}
		s.shown = append(s.shown, r)
	}
	return s, all
}

// exposes returns why the policy hides the method that the generation answers, or "".
func (c *Catalog) exposes(a *agent.Artifact, g *agent.Generation) string {
	switch expose := c.policy.MCP.Expose; {
	case expose == agent.ExposeDurable && a.StateOf(g) != agent.StateDurable:
		return "the policy mcp.expose shows durable programs only"
	case expose == agent.ExposeApproved && !g.Approved:
		return "the policy mcp.expose shows approved programs only"
	}
	return ""
}

// list names the methods and sorts those that are listed. The caller holds mu.
func (c *Catalog) list() {
	c.names = newTable(slices.Collect(maps.Keys(c.known)))
	c.sorted = nil
	c.revision++
	for m, e := range c.known {
		name := c.names.names[m]
		if e.of.why != "" || name == "" {
			continue
		}
		if e.name != name { // entries and tools are shared: they are not changed
			e = e.named(name)
			c.known[m] = e
		}
		c.sorted = append(c.sorted, e)
	}
	slices.SortFunc(c.sorted, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
}
