// Package catalog lists the methods that agents see as tools, under names that models accept: every method whose stored
// program answers, as far as the policy mcp.expose shows it, and to whom (agent.Audience). Both MCP and function tools read it.
// Nobody is shown a word that another owner's model wrote before a person vouched for it or calls of two owners did: what describes a tool is
// for its audience, one bounded line, without characters that nobody sees, and marked where no person wrote it.
//
// A catalog follows the store's feed of changes, from its first use on. Each answer reflects every change that was
// acknowledged before the question. The package knows nothing of protocols. A page of the list, and a search of at most 32 words, look at each tool
// once; of a tool a search reads some two thousand characters.
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
	Policy    func() *agent.Policy // the one in force; another address is another policy
	// Serving returns the generation that would answer a call of the artifact's method, or why there is none.
	Serving func(a *agent.Artifact) (g *agent.Generation, why string)
}

// Catalog is safe for concurrent use.
type Catalog struct {
	o       Options
	store   store.Namespace
	follows *store.Follower

	hintMu   sync.Mutex
	watchers map[int]chan struct{} // guarded by hintMu
	next     int                   // guarded by hintMu

	mu       sync.Mutex
	roles    map[string]purposes // guarded by mu, as is all that follows
	known    map[Method]*entry
	names    *table
	sorted   []*entry // the listed ones, by name
	revision int64    // of sorted
	policy   *agent.Policy
}

// An entry is a method that has a program. It does not change: another one takes its place.
type entry struct {
	of    source
	name  string  // of its tools; "" until the table has given one
	shown []shown // the first one that is for a reader counts
}

// A shown is a method as some readers see it.
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

// named returns the entry under another name.
func (e *entry) named(name string) *entry {
	next := &entry{of: e.of, name: name, shown: slices.Clone(e.shown)}
	for i := range next.shown {
		t := *next.shown[i].tool
		t.Name = name
		next.shown[i].tool = &t
	}
	return next
}

// New returns a catalog that has read nothing yet.
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

// List returns at most limit of the tools that the reader is shown, by name, after the name after, and whether there are more. A name that is
// gone meanwhile is as good a place to go on from as any.
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

// Find returns the tool of that name, or a *NotFound. One that the reader is not shown is as good as none.
func (c *Catalog) Find(ctx context.Context, r agent.Reader, name string) (*Tool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
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

// Of returns the tool of the method, as the reader is shown it. *NotFound where it has none.
func (c *Catalog) Of(ctx context.Context, r agent.Reader, m Method) (*Tool, error) {
	c.mu.Lock()
	err := c.refresh(ctx)
	name := c.names.names[m]
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c.Find(ctx, r, name)
}

// unlisted returns the error for a name without a tool. It does not say whether another owner has one.
const unlisted = "list the tools, or search for one; those of other owners are listed once a person has registered the role or approved the program, or calls of two owners have made it durable"

// A NotFound says that there is no such tool, and why.
type NotFound struct{ Name, Reason string }

func (e *NotFound) Error() string { return fmt.Sprintf("unknown tool %q: %s", e.Name, e.Reason) }

// Is reports whether target is store.ErrNotFound.
func (e *NotFound) Is(target error) bool { return target == store.ErrNotFound }

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

// Subscribe returns a channel that receives after the tools may have changed; Revision then says whether they have.
func (c *Catalog) Subscribe() (hints <-chan struct{}, stop func()) {
	_ = c.follows.Follow() // whoever lists the tools tries again and gets the error
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

// Hint says to the subscribers that the tools may have changed. Whoever puts another policy into force calls it.
func (c *Catalog) Hint() {
	c.hintMu.Lock()
	defer c.hintMu.Unlock()
	for _, ch := range c.watchers {
		select {
		case ch <- struct{}{}:
		default: // it has not taken the last hint yet
		}
	}
}
