// Package catalog lists the methods that agents see as tools, under names that models accept: every method whose stored
// program answers, as far as the policy mcp.expose shows it. Both MCP and function tools read it.
//
// A catalog follows the store's feed of changes, from its first use on. Each answer reflects every change that was
// acknowledged before the question. The package knows nothing of protocols.
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
	known    map[Method]entry
	names    *table
	sorted   []*Tool // the listed ones, by name
	revision int64   // of sorted
	policy   *agent.Policy
}

// An entry is a method that has a program.
type entry struct {
	tool *Tool  // nil where no program answers
	why  string // why not
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

// List returns at most limit tools by name, after the name after, and whether there are more. A name that is gone
// meanwhile is as good a place to go on from as any.
func (c *Catalog) List(ctx context.Context, after string, limit int) (tools []*Tool, more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return nil, false, err
	}
	i, found := slices.BinarySearchFunc(c.sorted, after, func(t *Tool, name string) int { return strings.Compare(t.Name, name) })
	if found {
		i++
	}
	end := min(i+limit, len(c.sorted))
	return slices.Clone(c.sorted[i:end]), end < len(c.sorted), nil
}

// Find returns the tool of that name, or a *NotFound.
func (c *Catalog) Find(ctx context.Context, name string) (*Tool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	m, ok := c.names.methods[name]
	if !ok {
		return nil, c.unnamed(name)
	}
	e := c.known[m]
	if e.tool == nil {
		return nil, &NotFound{Name: name, Reason: fmt.Sprintf("%s.%s is not offered now: %s", m.Role, m.Name, e.why)}
	}
	return e.tool, nil
}

// A NotFound says that there is no such tool, and why.
type NotFound struct{ Name, Reason string }

func (e *NotFound) Error() string { return fmt.Sprintf("unknown tool %q: %s", e.Name, e.Reason) }

// Is reports whether target is store.ErrNotFound.
func (e *NotFound) Is(target error) bool { return target == store.ErrNotFound }

func (c *Catalog) unnamed(name string) error {
	claims := c.names.ambiguous[name]
	if len(claims) == 0 {
		return &NotFound{Name: name, Reason: "list the tools, or search for one"}
	}
	var names []string
	for _, m := range claims {
		if own := c.names.names[m]; own != "" {
			names = append(names, own)
		}
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
