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
	"slices"
	"strings"
	"sync"

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
