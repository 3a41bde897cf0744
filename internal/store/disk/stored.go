package disk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// stored is the part that counts stored bytes by owner. The sums follow the entries, which record growth that cannot be
// computed from them alone. A checkpoint holds the sums as of its lsn, so a start reads no files to obtain them. If
// they are missing there or may be wrong, everything is counted again.
type stored struct {
	n *namespace

	kept   store.Sums // sessions, records, tools and examples; guarded by shared.mu, as are values and totaled
	values store.Sums // values of calls, including those without a line yet

	// bytes of the values that have lines, by owner; guarded by flusher.mu once the store is shared, as is anew
	written map[string]int64

	anew   struct{ all, values bool } // what must be counted again
	unsure atomic.Bool                // something was damaged, and the next start must count everything again

	totaled bool // shared.total includes the sums; guarded by shared.mu
}

func newStored(n *namespace) *stored { return &stored{n: n, written: map[string]int64{}} }

// storedDoc holds the sums in a checkpoint.
type storedDoc struct {
	Owners []store.OwnerBytes `json:"owners"`
	Values map[string]int64   `json:"values"`       // by owner, of the lines before the checkpoint's place
	First  int                `json:"first_values"` // number of the oldest segment that holds these lines
}

// taken returns the bytes that a session takes with its context and its history.
func (x *session) taken() store.Bytes {
	x.mu.RLock()
	defer x.mu.RUnlock()
	b := store.Bytes{Contexts: store.SessionBytes(x.meta) + store.ContextBytes(x.context),
		Histories: x.bytes - int64(x.size-len(x.pending))}
	for _, line := range x.pending {
		b.Histories += int64(len(line))
	}
	return b
}

// apply adds the growth by an entry. The caller holds shared.mu.
func (p *stored) apply(e *entry) {
	if e.Create != nil {
		p.create(e.Create)
	}
	for _, g := range e.Grown {
		p.add(g.Owner, store.Bytes{Contexts: g.Contexts, Histories: g.Histories, Tools: g.Tools, Examples: g.Examples})
	}
	if e.planned.session != nil && e.record != nil {
		p.add(e.planned.session.meta.Owner, store.Bytes{Histories: int64(len(e.record))})
	}
}

// create adds a new session.
func (p *stored) create(c *created) {
	p.add(c.Session.Owner, store.Bytes{Contexts: store.SessionBytes(c.Session) + store.ContextBytes(c.Context)})
}

// add adds growth to the owner's sums and to the total of the store. The caller holds shared.mu.
func (p *stored) add(owner string, b store.Bytes) {
	p.kept.Add(owner, b)
	p.n.shared.total.Add(b)
}

// addValue adds the stored value of a call; a sign of -1 subtracts it. The caller holds shared.mu.
func (p *stored) addValue(v *valueLine, sign int64) {
	b := store.Bytes{Values: sign * v.size()}
	p.values.Add(v.Owner, b)
	p.n.shared.total.Add(b)
}

// published counts the values whose lines were written. The caller holds flusher.mu.
func (p *stored) published(list []*pendingCall) {
	for _, c := range list {
		if n := c.value.size(); n > 0 {
			p.written[cmp.Or(c.value.Owner, agent.LocalOwner)] += n
		}
	}
}

// freed sums the bytes of value lines that are dropped or erased.
type freed struct{ store.Sums }

// line adds the bytes of a line. It ignores lines that do not parse.
func (f *freed) line(line []byte) {
	var v valueLine
	if json.Unmarshal(line, &v) == nil {
		f.Add(v.Owner, store.Bytes{Values: v.size()})
	}
}

// drop subtracts the bytes of removed lines. The caller holds flusher.mu.
func (p *stored) drop(f *freed) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.n.gone.Load() {
		return
	}
	for _, o := range f.List() {
		b := store.Bytes{}.Minus(o.Bytes)
		p.values.Add(o.Owner, b)
		p.n.shared.total.Add(b)
		p.written[o.Owner] -= o.Values
	}
}

// doc returns the sums for a checkpoint, or nil if kept is nil because they are uncertain. kept must be the sums as of
// the checkpoint's lsn.
func (p *stored) doc(kept *store.Sums) *storedDoc {
	if kept == nil {
		return nil
	}
	return &storedDoc{kept.List(), maps.Clone(p.written), p.n.calls.values.First()}
}

// bytes returns the bytes that the namespace takes, without files.
func (d *storedDoc) bytes() (b store.Bytes) {
	for _, o := range d.Owners {
		b.Add(o.Bytes)
	}
	for _, n := range d.Values {
		b.Values += n
	}
	return b
}

// gather returns a copy of the sums, or nil if they are uncertain. The caller holds shared.mu.
func (p *stored) gather() *store.Sums {
	if p.unsure.Load() {
		return nil
	}
	kept := p.kept.Clone()
	return &kept
}

// load takes the sums from a checkpoint, or marks them to be counted.
func (p *stored) load(at *checkpointed) {
	if at == nil || at.Stored == nil || p.n.o.recount {
		p.anew.all = true
		return
	}
	for _, o := range at.Stored.Owners {
		p.kept.Add(o.Owner, o.Bytes)
	}
	for owner, n := range at.Stored.Values {
		p.written[owner] = n
		p.values.Add(owner, store.Bytes{Values: n})
	}
	p.anew.values = at.Stored.First != p.n.calls.values.First() // segments were dropped after the checkpoint
}

// count counts again what load or a replay marked. Nothing may change meanwhile: the store or the namespace is not
// shared yet.
func (p *stored) count(ctx context.Context) error {
	if p.anew.all {
		var kept store.Sums
		if err := errors.Join(p.countSessions(&kept), p.countTools(ctx, &kept)); err != nil {
			return err
		}
		p.n.mu.Lock()
		p.replace(&p.kept, kept)
		p.n.mu.Unlock()
		p.unsure.Store(false)
	}
	p.anew.all, p.anew.values = false, p.anew.all || p.anew.values
	return p.countValues()
}

// replace replaces sums and adjusts the total of the store. The caller holds shared.mu.
func (p *stored) replace(sums *store.Sums, with store.Sums) {
	if p.totaled {
		p.n.shared.total.Add(with.All.Minus(sums.All))
	}
	*sums = with
}

func (p *stored) countSessions(kept *store.Sums) error {
	all, err := p.n.sessions.allIDs()
	if err != nil {
		return err
	}
	for _, id := range all {
		x, err := p.n.sessions.get(id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		kept.Add(x.metadata().Owner, x.taken())
	}
	return nil
}

func (p *stored) countTools(ctx context.Context, kept *store.Sums) error {
	for _, role := range p.n.catalog.ranking.Roles() {
		store.ToolBytes(p.n.catalog.tool(role), kept.Add)
		all, err := p.n.ListArtifacts(ctx, role)
		if err != nil {
			return err
		}
		for _, a := range all {
			store.ArtifactBytes(a, kept.Add)
		}
	}
	return nil
}

// countValues counts the values again if lines could not be completely erased or dropped. Lines of earlier versions do
// not name an owner. The caller holds flusher.mu or has not shared the namespace yet.
func (p *stored) countValues() error {
	if !p.anew.values {
		return nil
	}
	var lines freed
	values := p.n.calls.values
	if err := values.Backward(context.Background(), values.End(),
		func(line []byte) (bool, error) { lines.line(line); return false, nil }); err != nil {
		return err
	}
	p.written, p.anew.values = map[string]int64{}, false
	for _, o := range lines.List() {
		p.written[o.Owner] = o.Values
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	for _, c := range p.n.calls.pending {
		lines.Add(c.value.Owner, store.Bytes{Values: c.value.size()})
	}
	p.replace(&p.values, lines.Sums)
	return nil
}

// taken returns the bytes that the namespace takes. The caller holds shared.mu or has not shared the namespace yet.
func (n *namespace) taken() store.Bytes {
	b := n.stored.kept.All
	b.Add(n.stored.values.All)
	b.Add(n.streams.owners.All)
	return b
}

// Stored is part of store.Namespace.
func (p *stored) Stored(_ context.Context, owner string) (s store.Stored, err error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	for _, sums := range p.sums() {
		s.Own.Add(sums.Of(owner))
		s.All.Add(sums.All)
	}
	s.Others = p.n.shared.total.Minus(s.All)
	return s, nil
}

// sums returns all sums of the namespace, including those of files.
func (p *stored) sums() [3]*store.Sums {
	return [3]*store.Sums{&p.kept, &p.values, &p.n.streams.owners}
}

// ListStored is part of store.Namespace. It blocks commits only while it looks at each owner's name once.
func (p *stored) ListStored(_ context.Context, after string, limit int) ([]store.OwnerBytes, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	names := map[string]bool{}
	last := "" // the last name, once there are limit names
	for _, sums := range p.sums() {
		for owner := range sums.Owners() {
			if owner <= after || names[owner] || len(names) >= limit && owner >= last {
				continue
			}
			if names[owner] = true; len(names) > limit {
				delete(names, last)
			}
			if len(names) >= limit {
				last = slices.Max(slices.Collect(maps.Keys(names)))
			}
		}
	}
	out := make([]store.OwnerBytes, 0, len(names))
	for _, owner := range slices.Sorted(maps.Keys(names)) {
		o := store.OwnerBytes{Owner: owner}
		for _, sums := range p.sums() {
			o.Add(sums.Of(owner))
		}
		out = append(out, o)
	}
	return out, nil
}

// grown is how many bytes an entry adds to what an owner has stored; negative numbers subtract.
type grown struct {
	Owner     string `json:"o,omitempty"`
	Contexts  int64  `json:"c,omitempty"`
	Histories int64  `json:"h,omitempty"`
	Tools     int64  `json:"t,omitempty"`
	Examples  int64  `json:"x,omitempty"`
}

// grow records growth in the entry. A replay cannot compute it, because the files may already include the entry.
func (e *entry) grow(owner string, b store.Bytes) {
	for i := range e.Grown {
		if g := &e.Grown[i]; g.Owner == owner {
			*g = grown{owner, g.Contexts + b.Contexts, g.Histories + b.Histories, g.Tools + b.Tools,
				g.Examples + b.Examples}
			return
		}
	}
	e.Grown = append(e.Grown, grown{owner, b.Contexts, b.Histories, b.Tools, b.Examples})
}

// shrink is grow with the opposite sign.
func (e *entry) shrink(owner string, b store.Bytes) { e.grow(owner, store.Bytes{}.Minus(b)) }

// growErased records the growth by a record whose session has been erased from the files already. The session's
// deletion, a later entry, subtracts it again.
func (e *entry) growErased() error {
	if e.Record == nil {
		return nil
	}
	line, err := withSeq(e.Record, e.Seq)
	owner := ""
	if e.call != nil {
		owner = e.call.log.Owner
	}
	e.grow(owner, store.Bytes{Histories: int64(len(line))})
	return err
}

// growArtifact records by how much an artifact grows; old or next may be nil.
func (e *entry) growArtifact(old, next *agent.Artifact) {
	if old != nil && next != nil && store.SameBody(old, next) {
		return
	}
	store.ArtifactBytes(old, e.shrink)
	store.ArtifactBytes(next, e.grow)
}

// growTool records by how much a registered tool grows; old or next may be nil.
func (e *entry) growTool(old, next *agent.Tool) {
	if old != nil && next != nil && old.Owner == next.Owner && sameContract(old, next) {
		return
	}
	store.ToolBytes(old, e.shrink)
	store.ToolBytes(next, e.grow)
}

// growContext records by how much the context of the entry's session grows. It takes earlier entries of the batch into
// account.
func (b *batch) growContext(e *entry) {
	x := e.planned.session
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := store.ContextGrowth(e.Context, func(key string) (json.RawMessage, bool) {
		for _, c := range slices.Backward(b.contexts) {
			if c.session != x {
				continue
			}
			if slices.Contains(c.change.Delete, key) {
				return nil, false
			}
			if v, set := c.change.Set[key]; set {
				return v, true
			}
		}
		v, has := x.context[key]
		return v, has
	})
	if n != 0 {
		e.grow(x.meta.Owner, store.Bytes{Contexts: n})
	}
	b.contexts = append(b.contexts, plannedContext{x, e.Context})
}

// growMoved records what is archived or restored. Only what is in use counts.
func (e *entry) growMoved() {
	for _, x := range e.away {
		x.each(e.shrink)
	}
	for _, x := range e.restored {
		x.each(e.grow)
	}
}

// each calls visit with the bytes that x takes while it is in use, by owner.
func (x archived) each(visit func(owner string, b store.Bytes)) {
	store.ToolBytes(x.tool, visit)
	if x.artifact != nil {
		store.ArtifactBytes(x.artifact.a, visit)
	}
}
