// Package catalog lists the methods that agents see as tools, under names that models accept. A method is listed if a
// stored program answers it, the policy mcp.expose shows it, and the reader belongs to its audience (agent.Audience).
// MCP and function tools both use the catalog.
//
// Text written by one owner's model is shown to other owners only after a person has vouched for it, or calls of two
// owners have made it durable. A tool's description is one bounded line for its audience, without invisible characters,
// and marked unless a person wrote it.
//
// A catalog follows the store's change feed from its first use on. Each answer reflects every change acknowledged
// before the request. A page of the list, and a search of at most 32 words, look at each tool once; a search reads
// about two thousand characters of each tool. The package knows nothing of protocols.
package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Options configures a Catalog. All fields but Namespace are required.
type Options struct {
	Store     store.Store
	Namespace agent.Namespace      // "" for the default one
	Policy    func() *agent.Policy // the policy in force; a changed policy has a new address
	// Serving returns the generation that would answer a call of the artifact's method, or nil and the reason.
	Serving func(a *agent.Artifact) (g *agent.Generation, why string)
}

// Catalog lists the tools of one namespace. It is safe for concurrent use.
type Catalog struct {
	o       Options
	store   store.Namespace
	follows *store.Follower

	hintMu   sync.Mutex
	watchers map[int]chan struct{} // guarded by hintMu
	next     int                   // guarded by hintMu

	mu       sync.Mutex
	roles    map[string]purposes // guarded by mu, as are all fields below
	known    map[Method]*entry
	names    *table
	sorted   []*entry // the listed entries, by name
	revision int64    // of sorted
	policy   *agent.Policy
}

// An entry is a method that has a program. It is immutable; an update replaces it.
type entry struct {
	of    source
	name  string  // of its tools; "" until the table assigns one
	shown []shown // the first one whose audience includes the reader applies
}

// A shown is a method as one audience sees it.
type shown struct {
	to   agent.Audience
	tool *Tool
}

// to returns the tool that the reader is shown, or nil.
func (e *entry) to(r agent.Reader) *Tool {
	for _, s := range e.shown {
		if s.to.Has(r) {
			return s.tool
		}
	}
	return nil
}

// named returns a copy of the entry under another name.
func (e *entry) named(name string) *entry {
	next := &entry{of: e.of, name: name, shown: slices.Clone(e.shown)}
	for i := range next.shown {
		t := *next.shown[i].tool
		t.Name = name
		next.shown[i].tool = &t
	}
	return next
}

// New returns a catalog. It reads nothing until its first use. Close it after use.
func New(o Options) (*Catalog, error) {
	if o.Store == nil || o.Policy == nil || o.Serving == nil {
		return nil, errors.New("catalog: Store, Policy and Serving are required")
	}
	o.Namespace = cmp.Or(o.Namespace, agent.DefaultNamespace)
	held, err := o.Store.Namespace(o.Namespace)
	if err != nil {
		return nil, err
	}
	c := &Catalog{o: o, store: held, watchers: map[int]chan struct{}{}}
	c.follows = store.NewFollower(o.Store, o.Namespace, c.Hint)
	return c, nil
}

// Close stops following the store.
func (c *Catalog) Close() { c.follows.Close() }

// List returns at most limit tools shown to the reader, sorted by name, that follow the name after. more reports
// whether further tools follow. after need not exist any more.
func (c *Catalog) List(ctx context.Context, r agent.Reader, after string,
	limit int) (tools []*Tool, more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return nil, false, err
	}
	i, found := slices.BinarySearchFunc(c.sorted, after, func(e *entry,
		name string) int {
		return strings.Compare(e.name, name)
	})
	if found {
		i++
	}
	tools = []*Tool{}
	for _, e := range c.sorted[i:] {
		t := e.to(r)
		if t != nil && len(tools) == limit {
			return tools, true, nil
		}
		if t != nil {
			tools = append(tools, t)
		}
	}
	return tools, false, nil
}

// Find returns the tool with that name, or a *NotFound. It does not find tools that are hidden from the reader.
func (c *Catalog) Find(ctx context.Context, r agent.Reader, name string) (*Tool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	return c.find(r, name)
}

// find returns the tool with that name. The caller holds mu.
func (c *Catalog) find(r agent.Reader, name string) (*Tool, error) {
	m, ok := c.names.methods[name]
	if !ok {
		return nil, c.unnamed(r, name)
	}
	e := c.known[m]
	t := e.to(r)
	switch {
	case t == nil:
		return nil, &NotFound{Name: name, Reason: unlisted}
	case e.of.why != "":
		return nil, &NotFound{Name: name, Reason: t.Title + " is not offered now: " + e.of.why}
	}
	return t, nil
}

// Of returns the method's tool as shown to the reader, or a *NotFound.
func (c *Catalog) Of(ctx context.Context, r agent.Reader, m Method) (*Tool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	return c.find(r, c.names.names[m])
}

// unlisted is the reason given for a name without a visible tool. It does not reveal whether another owner has one.
const unlisted = "list the tools, or search for one; those of other owners are listed once a person has registered the role or approved the program, or calls of two owners have made it durable"

// A NotFound reports that there is no such tool, and why.
type NotFound struct{ Name, Reason string }

func (e *NotFound) Error() string { return fmt.Sprintf("unknown tool %q: %s", e.Name, e.Reason) }

// Is reports whether target is store.ErrNotFound, so that errors.Is matches it.
func (e *NotFound) Is(target error) bool { return target == store.ErrNotFound }

// unnamed returns the error for a name that stands for no method. If several methods claim the name, it suggests those
// visible to the reader.
func (c *Catalog) unnamed(r agent.Reader, name string) error {
	var names []string
	for _, m := range c.names.ambiguous[name] {
		if own := c.names.names[m]; own != "" && c.known[m].to(r) != nil {
			names = append(names, own)
		}
	}
	if len(names) == 0 {
		return &NotFound{Name: name, Reason: unlisted}
	}
	return &NotFound{Name: name, Reason: "several methods have that name; use " + strings.Join(names, " or ")}
}

// Subscribe returns a channel that receives a value after the tools may have changed; Revision then reports whether
// they have. The caller must call stop.
func (c *Catalog) Subscribe() (hints <-chan struct{}, stop func()) {
	_ = c.follows.Follow() // on an error, the next listing tries again and returns it
	c.hintMu.Lock()
	defer c.hintMu.Unlock()
	id := c.next
	c.next++
	ch := make(chan struct{}, 1)
	c.watchers[id] = ch
	return ch, func() {
		c.hintMu.Lock()
		defer c.hintMu.Unlock()
		delete(c.watchers, id)
	}
}

// Hint notifies subscribers that the tools may have changed. Call it after another policy comes into force.
func (c *Catalog) Hint() {
	c.hintMu.Lock()
	defer c.hintMu.Unlock()
	for _, ch := range c.watchers {
		select {
		case ch <- struct{}{}:
		default: // it has not taken the last hint yet
		} // it has not taken the last hint yet
	}
}

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
