// Package storage bounds what namespaces and owners keep, each kind by itself: a namespace may take three quarters of what the others leave free, and
// an owner as much as the policy says, so that whoever comes next finds room. Only growth is refused: what is above a bound is read, changed and
// deleted as before.
//
// It keeps no sums, the store does; it is asked before something is written. What calls are about to write is held until they have written it, so that
// calls that wait together do not pass a bound together. It knows nothing of HTTP, and nothing of what is stored.
package storage

import (
	"context"
	"errors"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Options configures Shares.
type Options struct {
	Store     store.Namespace      // required
	Policy    func() *agent.Policy // the one in force; required
	Most      store.Bytes          // what all namespaces together may take, by kind; 0 is no bound
	Several   bool                 // there are access tokens, and so several owners and namespaces
	OnRefusal func(kind string)    // counts; nil: nobody does
}

// Shares is safe for concurrent use. A nil one has no bounds.
type Shares struct {
	o Options

	mu      sync.Mutex
	pending store.Sums // what Hold took; guarded by mu
}

// New returns Shares.
func New(o Options) (*Shares, error) {
	if o.Store == nil || o.Policy == nil {
		return nil, errors.New("storage: Store and Policy are required")
	}
	if o.OnRefusal == nil {
		o.OnRefusal = func(string) {}
	}
	return &Shares{o: o}, nil
}

// mostTools bounds the tools: contracts are held in memory.
const mostTools = 1 << 30

// Split returns what all namespaces may take by kind, of that much in sum for everything but files.
func Split(all, files int64) store.Bytes {
	return store.Bytes{Files: files, Contexts: all / 8, Histories: all / 8 * 3, Values: all / 8 * 3,
		Tools: min(all/16, mostTools), Examples: all / 16}
}

// Parts of what there is, while there are access tokens. Without tokens everybody has all.
const (
	ownersPart     = 0.5  // of what all namespaces may take; the policy may say otherwise
	namespacesPart = 0.75 // of what the other namespaces leave free
)

// OwnerShare is the part of what all may take that one owner may, by that policy.
func (s *Shares) OwnerShare(p *agent.Policy) float64 {
	switch {
	case p.Storage.OwnerShare > 0:
		return p.Storage.OwnerShare
	case s != nil && s.o.Several:
		return ownersPart
	}
	return 1
}

// A Bound is how much of a kind a share holds, and may hold.
type Bound struct {
	Share       string // one of the Share constants
	Used, Limit int64
	hidden      bool  // Used or Limit would reveal the bytes of others
	of          int64 // Used, of the namespace alone, where that is of all
}

// Full is the error of a bound that has no room.
func (b Bound) Full(owner, kind string) *FullError {
	if b.hidden {
		if b.Share == ShareDaemon {
			b.Used = b.of
		}
		b.Limit = b.Used
	}
	return &FullError{Of: kind, Share: b.Share, Owner: owner, Used: b.Used, Limit: b.Limit}
}

// Bounds returns those of the owner, of the namespace and of all namespaces for a kind; none where there are none.
func (s *Shares) Bounds(ctx context.Context, owner, kind string) ([]Bound, error) {
	if s == nil || s.o.Most.Of(kind) == 0 {
		return nil, nil
	}
	held, err := s.o.Store.Stored(ctx, owner)
	if err != nil {
		return nil, err
	}
	own, space := s.bounds(&held, kind)
	used := held.All.Of(kind) + held.Others.Of(kind)
	return []Bound{own, space, {Share: ShareDaemon, Used: used, Limit: s.o.Most.Of(kind), of: held.All.Of(kind),
		hidden: true}}, nil
}

func (s *Shares) bounds(held *store.Stored, kind string) (own, space Bound) {
	most, others := s.o.Most.Of(kind), held.Others.Of(kind)
	own = Bound{Share: ShareOwner, Used: held.Own.Of(kind), Limit: int64(s.OwnerShare(s.o.Policy()) * float64(most))}
	space = Bound{Share: ShareNamespace, Used: held.All.Of(kind), Limit: max(0, most-others), hidden: others > 0}
	if s.o.Several {
		space.Limit = int64(namespacesPart * float64(space.Limit))
	}
	return own, space
}

// Room returns a *FullError if a kind in more exceeds a bound of the owner or the namespace, or the store's error.
func (s *Shares) Room(ctx context.Context, owner string, more store.Bytes) error {
	return s.counted(s.look(ctx, owner, more))
}

// Hold is Room, and takes that much until Release gives it back: once it is written, or will not be.
func (s *Shares) Hold(ctx context.Context, owner string, more store.Bytes) error {
	if s == nil {
		return nil
	}
	held, err := s.o.Store.Stored(ctx, owner)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fit(held, owner, more); err != nil {
		return s.counted(err)
	}
	s.pending.Add(owner, more)
	return nil
}

// Release gives back what was held for the owner.
func (s *Shares) Release(owner string, held store.Bytes) {
	if s == nil || held == (store.Bytes{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.Add(owner, store.Bytes{}.Minus(held))
}

// counted counts a refusal.
func (s *Shares) counted(err error) error {
	var full *FullError
	if errors.As(err, &full) {
		return s.Refused(full)
	}
	return err
}

// Fits reports whether there is room for what can be left out.
func (s *Shares) Fits(ctx context.Context, owner string, more store.Bytes) bool {
	return s.look(ctx, owner, more) == nil
}

func (s *Shares) look(ctx context.Context, owner string, more store.Bytes) error {
	if s == nil {
		return nil
	}
	held, err := s.o.Store.Stored(ctx, owner)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fit(held, owner, more)
}

// fit returns a *FullError if more exceeds a bound, counting stored and pending bytes. The caller holds mu.
func (s *Shares) fit(held store.Stored, owner string, more store.Bytes) error {
	held.Own.Add(s.pending.Of(owner))
	held.All.Add(s.pending.All)
	for _, kind := range store.Kinds() {
		n := more.Of(kind)
		if n <= 0 || s.o.Most.Of(kind) == 0 {
			continue
		}
		own, space := s.bounds(&held, kind)
		for _, b := range [2]Bound{own, space} {
			if b.Used+n > b.Limit {
				return b.Full(owner, kind)
			}
		}
	}
	return nil
}

// Refused counts a refusal.
func (s *Shares) Refused(e *FullError) *FullError {
	if s != nil {
		s.o.OnRefusal(e.Of)
	}
	return e
}
