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

// Revision returns a number that changes whenever the listed tools change.
func (c *Catalog) Revision(ctx context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.refresh(ctx)
	return c.revision, err
}

// refresh reads the changes since the last call. The caller holds mu.
func (c *Catalog) refresh(ctx context.Context) error {
	dirty, all, err := c.follows.Take()
	if err != nil {
		return err
	}
	// Compare the policy at each call: the store's feed may be ahead of the policy that is in force here.
	if p := c.o.Policy(); p != c.policy {
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

// read updates known and reports whether anything differs. If it fails, no entry has changed: the next read would find
// the changed ones equal.
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
	now := make(map[Method]*agent.Artifact, len(dirty))
	for m := range dirty {
		if m.Method == "" {
			continue
		}
		a, err := c.store.Artifact(ctx, m.Role, m.Method)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		now[Method{m.Role, m.Method}] = a
	}
	for m, a := range now {
		changed = c.put(m, a) || changed
	}
	return changed, nil
}

// readAll reads every method again.
func (c *Catalog) readAll(ctx context.Context) error {
	c.roles, c.known = map[string]purposes{}, map[Method]*entry{}
	everything, err := c.store.Stale(ctx, time.Unix(1<<40, 0)) // not used since a time in the far future: everything
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

// purposesOf reads the purposes of a role. A role that is not registered has none.
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

// put updates the method's entry from its artifact and reports whether the entry differs. A nil artifact, or one
// without a program, removes the entry.
func (c *Catalog) put(m Method, a *agent.Artifact) (changed bool) {
	was, had := c.known[m]
	if a == nil || a.Current() == nil {
		delete(c.known, m)
		return had
	}
	now, all := c.sourceOf(m, a)
	if had && now.same(&was.of) { // the common case, after a counted call
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

// A source holds the inputs that an entry is made from.
type source struct {
	serving  *agent.Generation
	why      string // why the method is not listed; "" if it is
	purposes purposes
	shown    []reading
}

// A reading is an interface with the audience that is shown it.
type reading struct {
	generation string
	takes      *agent.Interface
	to         agent.Audience
}

// same reports whether both would make equal entries. It compares interfaces by address.
func (s *source) same(t *source) bool {
	return s.why == t.why && s.serving.ID == t.serving.ID && slices.Equal(s.shown, t.shown) &&
		s.purposes.equal(t.purposes)
}

// sourceOf returns the inputs of the method's entry, and the descriptions to show. If no generation serves, the current
// one stands for the method and why is set.
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
			d.Generation = nil // agents call without a contract, so this program does not answer them
		}
		r := reading{to: d.To}
		if d.Generation != nil {
			r.generation, r.takes = d.Generation.ID, d.Generation.Interface
		}
		s.shown = append(s.shown, r)
	}
	return s, all
}

// exposes returns the reason why the policy hides a method that g answers, or "".
func (c *Catalog) exposes(a *agent.Artifact, g *agent.Generation) string {
	switch expose := c.policy.MCP.Expose; {
	case expose == agent.ExposeDurable && a.StateOf(g) != agent.StateDurable:
		return "the policy mcp.expose shows durable programs only"
	case expose == agent.ExposeApproved && !g.Approved:
		return "the policy mcp.expose shows approved programs only"
	}
	return ""
}

// list assigns names and sorts the listed methods. The caller holds mu.
func (c *Catalog) list() {
	c.names = newTable(slices.Collect(maps.Keys(c.known)))
	c.sorted = nil
	c.revision++
	for m, e := range c.known {
		name := c.names.names[m]
		if e.of.why != "" || name == "" {
			continue
		}
		if e.name != name { // entries and tools are shared, so they are replaced
			e = e.named(name)
			c.known[m] = e
		}
		c.sorted = append(c.sorted, e)
	}
	slices.SortFunc(c.sorted, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
}
