// Package overview maintains, for each tool and method, the data that lists show and sort by, so that a page costs the
// same for thousands of tools as for ten: the tools sorted by name, use, failures and cost, and the decisions that wait
// for a person.
//
// An Overview follows the store's change feed from its first use on, and reads the changes when asked: each answer
// reflects every change acknowledged before the request. Model usage is read again as often as takes at most a
// twentieth of the time. A page of a search reads at most 4 KiB of each of 20,000 tools for each word. The package
// decides nothing and changes nothing. It keeps its data in memory only.
package overview

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/bell"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Options configures an Overview. Store is required.
type Options struct {
	Store     store.Store
	Namespace agent.Namespace  // "" means the default one
	Now       func() time.Time // nil means time.Now
	// Stale reports whether the program that answers was made for another wording than the registered one, under the
	// policy in force. The artifact may be a result of agent.Artifact.Selectable. nil means that none is stale.
	Stale func(t *agent.Tool, a *agent.Artifact) bool
	// Policy returns the policy in force. It is compared by address: a changed policy may change what is stale. nil
	// means that it never changes.
	Policy func() *agent.Policy
	// Usage reports the model usage by role. nil means that it is unknown.
	Usage func(ctx context.Context) (spend.UsageReport, error)
}

// Overview maintains the lists of one namespace. It is safe for concurrent use.
type Overview struct {
	o       Options
	store   store.Namespace
	follows *store.Follower
	changed bell.Bell

	mu    sync.Mutex
	roles map[string]*role // guarded by mu, as are all fields below
	lists lists
	costs costs
	under *agent.Policy     // the policy under which staleness was determined
	waits map[method][]Wait // only methods that have any; a role's own have no method name
}

type method struct{ role, name string }

// A role holds the data of one role, registered or not.
type role struct {
	tool    *agent.Tool // nil while it is not registered
	methods map[string]digest
	row     *row // nil if it is neither registered nor has a program
}

// New returns an overview. It reads nothing until its first use. Close it after use.
func New(o Options) (*Overview, error) {
	if o.Store == nil {
		return nil, errors.New("overview: Store is required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Stale == nil {
		o.Stale = func(*agent.Tool, *agent.Artifact) bool { return false }
	}
	if o.Policy == nil {
		o.Policy = func() *agent.Policy { return nil }
	}
	o.Namespace = cmp.Or(o.Namespace, agent.DefaultNamespace)
	held, err := o.Store.Namespace(o.Namespace)
	if err != nil {
		return nil, err
	}
	view := &Overview{o: o, store: held, lists: newLists()}
	view.follows = store.NewFollower(o.Store, o.Namespace, view.changed.Ring)
	return view, nil
}

// Changed returns a channel that is closed when a tool, an artifact or the policy changes, or when changes may have
// been missed. Take the channel before a query; once it is closed, the same query returns the change.
func (o *Overview) Changed() <-chan struct{} { return o.changed.Wait() }

// Close stops following the store.
func (o *Overview) Close() { o.follows.Close() }

// refresh reads the changes since the last call. The caller holds mu.
func (o *Overview) refresh(ctx context.Context) error {
	dirty, all, err := o.follows.Take()
	if err != nil {
		return err
	}
	if all {
		dirty, err = o.everything(ctx)
	}
	// Read the policy before the data is evaluated, so that a later change of it is noticed.
	policy := o.o.Policy()
	if err == nil {
		err = o.read(ctx, dirty)
	}
	if err != nil {
		o.follows.GiveBack(dirty, all)
		return err
	}
	if policy != o.under {
		o.under = policy
		for name := range o.roles {
			o.place(name)
		}
	}
	return nil
}

// everything resets the data and returns all targets as dirty.
func (o *Overview) everything(ctx context.Context) (map[store.Target]bool, error) {
	targets, err := o.store.Stale(ctx, time.Unix(1<<40, 0)) // not used since a time in the far future: everything
	if err != nil {
		return nil, err
	}
	o.roles, o.waits, o.lists, o.costs = map[string]*role{}, map[method][]Wait{}, newLists(), costs{}
	dirty := make(map[store.Target]bool, len(targets))
	for _, t := range targets {
		dirty[store.Target{Role: t.Role, Method: t.Method}] = true
	}
	return dirty, nil
}

// read reads the targets and places their roles again.
func (o *Overview) read(ctx context.Context, dirty map[store.Target]bool) error {
	changed := map[string]bool{}
	for t := range dirty {
		changed[t.Role] = true
		r := o.roles[t.Role]
		if r == nil {
			r = &role{methods: map[string]digest{}}
			o.roles[t.Role] = r
		}
		if err := o.readOne(ctx, r, method{t.Role, t.Method}); err != nil {
			return err
		}
	}
	// Once per role, after all its methods are read.
	for name := range changed {
		o.place(name)
	}
	return nil
}

// readOne reads a method, or the registry entry of a role if m has no name.
func (o *Overview) readOne(ctx context.Context, r *role, m method) error {
	if m.name == "" {
		t, err := o.store.Tool(ctx, m.role)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		delete(o.waits, m)
		if r.tool = nil; err != nil {
			return nil
		}
		r.tool = &t
		if waits := waitsOfTool(&t); len(waits) > 0 {
			o.waits[m] = waits
		}
		return nil
	}
	a, err := o.store.Artifact(ctx, m.role, m.name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	delete(o.waits, m)
	if err != nil {
		delete(r.methods, m.name)
		return nil
	}
	r.methods[m.name] = digestOf(a)
	if waits := waitsOf(a); len(waits) > 0 {
		o.waits[m] = waits
	}
	return nil
}

// place updates the role's position in the lists, or removes it from them.
func (o *Overview) place(name string) {
	r := o.roles[name]
	if r.row != nil {
		o.lists.drop(r.row)
		r.row = nil
	}
	tool := r.entry()
	if tool == nil {
		if len(r.methods) == 0 {
			delete(o.roles, name)
		}
		return
	}
	r.row = newRow(r, tool, o.costs.of[name], func(a *agent.Artifact) bool { return o.o.Stale(tool, a) })
	o.lists.put(r.row)
}

// entry returns the role's registry entry, or the one that its programs imply, or nil.
func (r *role) entry() *agent.Tool {
	if r.tool != nil {
		return r.tool
	}
	var first *agent.Tool
	for _, d := range r.methods {
		if t := d.implied; t != nil && (first == nil || t.CreatedAt.Before(first.CreatedAt)) {
			first = t
		}
	}
	return first
}
