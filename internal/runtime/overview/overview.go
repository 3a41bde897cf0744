// Package overview keeps of each tool and method what lists show and order by, so that a page of thousands of tools costs as much as a page
// of ten: the tools ordered by name, use, failures and cost, and what waits for a person's decision.
//
// An Overview follows the store's feed of changes from its first use on, and reads what has changed when it is asked: each answer reflects
// every change that was acknowledged before the question. What models were asked is read again as soon as that takes no more than a
// twentieth of the time. The package decides nothing and changes nothing. A page of a search reads 4 KiB of each of
// 20,000 tools at most, for each word that is asked for.
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
	Namespace agent.Namespace  // "" for the default one
	Now       func() time.Time // nil: time.Now
	// Stale reports whether what answers was made for other words than people have registered of its method, under the policy in force. The artifact may be
	// agent.Artifact.Selectable's. nil: none is stale.
	Stale func(t *agent.Tool, a *agent.Artifact) bool
	// Policy is the policy in force, to compare by address: another one may change what is stale. nil: it never changes.
	Policy func() *agent.Policy
	// Usage reports what models were asked for each role. nil: nothing is known of it.
	Usage func(ctx context.Context) (spend.UsageReport, error)
}

// Overview is safe for concurrent use.
type Overview struct {
	o       Options
	store   store.Namespace
	follows *store.Follower
	changed bell.Bell

	mu    sync.Mutex
	roles map[string]*role // guarded by mu, as is all that follows
	lists lists
	costs costs
	under *agent.Policy     // what the lists say is stale
	waits map[method][]Wait // of the methods that have some, and of roles, without a name
}

type method struct{ role, name string }

// A role is what is known of one role, registered or not.
type role struct {
	tool    *agent.Tool // nil while it is not registered
	methods map[string]digest
	row     *row // in the lists; nil while it is not registered and has no program
}

// New returns an overview that has read nothing yet.
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

// Changed returns a channel that is closed when a tool, an artifact or the policy changes, or changes went unseen. It is for who takes it, asks
// something else of the overview, and asks that again once the channel is closed: the answer has the change then.
func (o *Overview) Changed() <-chan struct{} { return o.changed.Wait() }

// Close stops following the store.
func (o *Overview) Close() { o.follows.Close() }

// refresh reads what has changed. The caller holds mu.
func (o *Overview) refresh(ctx context.Context) error {
	dirty, all, err := o.follows.Take()
	if err != nil {
		return err
	}
	if all {
		dirty, err = o.everything(ctx)
	}
	policy := o.o.Policy() // before it is looked at, so that a later one is noticed
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

// everything forgets all that is known, and lists what there is.
func (o *Overview) everything(ctx context.Context) (map[store.Target]bool, error) {
	targets, err := o.store.Stale(ctx, time.Unix(1<<40, 0)) // not used since a time that is yet to come
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
	for name := range changed {
		o.place(name)
	}
	return nil
}

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

// place puts the role where its figures say, in or out of the lists.
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

// entry is the role's registry entry, or the one that its programs imply; nil where there are none.
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
