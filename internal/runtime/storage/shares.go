// Package storage bounds what namespaces and owners store, separately for each kind of data. A namespace may use three
// quarters of what the other namespaces leave free, and an owner the share that the policy sets, so newcomers find
// room. Only growth is rejected: data over a bound can still be read, changed and deleted.
//
// The package does not keep sums; the store does. It is asked before a write. What calls are about to write is held
// until it is written, so calls that wait at the same time cannot exceed a bound together. The package knows nothing
// about HTTP, or about the content of the data.
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
	Policy    func() *agent.Policy // returns the policy in force; required
	Most      store.Bytes          // bound of all namespaces together, by kind; 0 means no bound
	Several   bool                 // there are access tokens, and therefore several owners and namespaces
	OnRefusal func(kind string)    // called for each refusal, with the kind; may be nil
}

// Shares is safe for concurrent use. A nil *Shares has no bounds.
type Shares struct {
	o Options

	mu      sync.Mutex
	pending store.Sums // bytes taken by Hold; guarded by mu
}

// New returns Shares, or an error if a required option is missing.
func New(o Options) (*Shares, error) {
	if o.Store == nil || o.Policy == nil {
		return nil, errors.New("storage: Store and Policy are required")
	}
	if o.OnRefusal == nil {
		o.OnRefusal = func(string) {}
	}
	return &Shares{o: o}, nil
}

// mostTools bounds the tools' bytes, because contracts are held in memory.
const mostTools = 1 << 30

// Split returns the bounds of all namespaces by kind: files for files, and all, divided, for the other kinds.
func Split(all, files int64) store.Bytes {
	return store.Bytes{Files: files, Contexts: all / 8, Histories: all / 8 * 3, Values: all / 8 * 3,
		Tools: min(all/16, mostTools), Examples: all / 16}
}

// Default fractions while there are access tokens. Without tokens, a share is the whole.
const (
	ownersPart     = 0.5  // of the bound of all namespaces; the policy may set another
	namespacesPart = 0.75 // of what the other namespaces leave free
)

// OwnerShare returns the fraction of the bound of all namespaces that one owner may use under the policy. It may be
// called on nil.
func (s *Shares) OwnerShare(p *agent.Policy) float64 {
	switch {
	case p.Storage.OwnerShare > 0:
		return p.Storage.OwnerShare
	case s != nil && s.o.Several:
		return ownersPart
	}
	return 1
}

// A Bound is the use and the limit of a share for one kind of data.
type Bound struct {
	Share       string // one of the Share constants
	Used, Limit int64
	hidden      bool  // Used or Limit would reveal other namespaces' bytes
	of          int64 // bytes of this namespace alone, if Used counts all namespaces
}

// Full returns the error for a bound without room. It hides other namespaces' bytes.
func (b Bound) Full(owner, kind string) *FullError {
	if b.hidden {
		if b.Share == ShareDaemon {
			b.Used = b.of
		}
		b.Limit = b.Used
	}
	return &FullError{Of: kind, Share: b.Share, Owner: owner, Used: b.Used, Limit: b.Limit}
}

// Bounds returns the bounds of the owner, of the namespace and of all namespaces for a kind. It returns nil if the kind
// is unbounded.
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

// bounds returns the bounds of the owner and the namespace, given what the store holds.
func (s *Shares) bounds(held *store.Stored, kind string) (own, space Bound) {
	most, others := s.o.Most.Of(kind), held.Others.Of(kind)
	own = Bound{Share: ShareOwner, Used: held.Own.Of(kind), Limit: int64(s.OwnerShare(s.o.Policy()) * float64(most))}
	space = Bound{Share: ShareNamespace, Used: held.All.Of(kind), Limit: max(0, most-others), hidden: others > 0}
	if s.o.Several {
		space.Limit = int64(namespacesPart * float64(space.Limit))
	}
	return own, space
}

// Room returns a *FullError if more would exceed a bound of the owner or the namespace, or the store's error. It counts
// a refusal.
func (s *Shares) Room(ctx context.Context, owner string, more store.Bytes) error {
	return s.counted(s.look(ctx, owner, more))
}

// Hold is Room, and reserves the bytes until Release. The caller releases them once they are written or will not be.
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

// Release ends a reservation by Hold.
func (s *Shares) Release(owner string, held store.Bytes) {
	if s == nil || held == (store.Bytes{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.Add(owner, store.Bytes{}.Minus(held))
}

// counted counts err if it is a refusal, and returns it.
func (s *Shares) counted(err error) error {
	var full *FullError
	if errors.As(err, &full) {
		return s.Refused(full)
	}
	return err
}

// Fits reports whether there is room for optional data. It does not count a refusal.
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

// fit returns a *FullError if more would exceed a bound, counting stored and pending bytes. The caller holds mu.
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

// Refused counts a refusal and returns it.
func (s *Shares) Refused(e *FullError) *FullError {
	if s != nil {
		s.o.OnRefusal(e.Of)
	}
	return e
}
