package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// CommitCall implements Namespace.
func (n *memoryNamespace) CommitCall(ctx context.Context, c *store.CallCommit) error {
	if err := n.commitCall(ctx, c); err != nil {
		return err
	}
	if c.Ordered != nil {
		c.Ordered()
	}
	return nil
}

func (n *memoryNamespace) commitCall(ctx context.Context, c *store.CallCommit) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	if c.Repeated && n.repeats(c) {
		return nil
	}
	if err := n.members.Fenced(n.name, c.SessionID, c.Fence); err != nil {
		return err
	}
	var s *memorySession
	if c.Record.CallID != "" || !c.Context.Empty() {
		if s = n.sessions[c.SessionID]; s == nil {
			return store.ErrNotFound
		}
	}
	if n.conflicts(c.Artifacts) {
		return store.ErrConflict
	}
	if c.Record.CallID != "" {
		c.Record.Seq = len(s.records) + 1
		c.Log.ConversationHistorySize = c.Record.Seq
	}
	raw, err := json.Marshal(c.Record)
	if err != nil {
		return err
	}
	if err := compactAll(c); err != nil {
		return err
	}
	now := n.now()
	if s != nil {
		s.add(c, raw, now)
	}
	for _, change := range c.Artifacts {
		n.changeArtifact(change, false)
	}
	store.FillLog(&c.Log, n.artifacts[store.Target{Role: c.Log.Role, Method: c.Log.Method}])
	for _, t := range c.Tools {
		n.changeTool(t)
	}
	if p := c.Pattern; p != nil {
		events := append(slices.Clone(n.patterns[p.Role]), *p)
		n.patterns[p.Role] = events[max(0, len(events)-store.PatternsKept):]
	}
	n.log(c, now)
	if c.Content != nil {
		n.content.Put(*c.Content, c.SessionID, n.policy.Retention)
	}
	n.addFiles(c.Files)
	if c.Key != nil {
		k := *c.Key
		k.Reply = c.Reply
		n.replies[k.Key] = keptReply{k, c.SessionID, now}
	}
	n.commits++
	return nil
}

// repeats reports whether the call is committed already. If so, it sets in c what was assigned then.
func (n *memoryNamespace) repeats(c *store.CallCommit) bool {
	was := n.byID[c.Log.CallID]
	if was != nil {
		c.Assign(&was.log)
	}
	return was != nil
}

// conflicts reports whether a change was decided on another state of its artifact.
func (n *memoryNamespace) conflicts(changes []agent.ArtifactChange) bool {
	return slices.ContainsFunc(changes, func(c agent.ArtifactChange) bool {
		return c.Conflicts(n.artifacts[store.Target{Role: c.Role, Method: c.MethodName}])
	})
}

// add applies the call to its session. raw is the call's record.
func (s *memorySession) add(c *store.CallCommit, raw json.RawMessage, now time.Time) {
	if c.Record.CallID != "" {
		s.records = append(s.records, memoryRecord{c.Record, raw})
	}
	c.Context.Apply(s.context)
	s.session.HistorySize = len(s.records)
	s.session.UpdatedAt = now
	s.session.Revision++
}

// log adds a call to the call log, unless it has no log entry.
func (n *memoryNamespace) log(c *store.CallCommit, now time.Time) {
	if c.Log.CallID == "" {
		return
	}
	kept := &memoryCall{log: c.Log, effects: c.Effects, at: now}
	if c.Outcome.Status != "" {
		o := c.Outcome
		kept.outcome = &o
	}
	n.calls = append(n.calls, kept)
	n.evidence.Add(&c.Log)
	n.byID[c.Log.CallID] = kept
	n.ledger.Call(agent.DayOf(now), &c.Log, c.Artifacts)
	if n.feed.Watched() {
		e := c.Log // a copy, because the kept entry may change
		n.changed(store.Change{Kind: store.ChangedCall, CallID: e.CallID, SessionID: c.SessionID, Log: &e})
	}
	if corrected := n.byID[c.Log.UserCorrectionReferenceCallID]; corrected != nil {
		corrected.log.CorrectedBy = c.Log.CallID
	}
}

// compactAll returns an error if the commit contains invalid JSON. It runs before anything changes.
func compactAll(c *store.CallCommit) error {
	check := func(what string, raw json.RawMessage) error {
		if raw != nil && !json.Valid(raw) {
			return fmt.Errorf("%s of call %s is not JSON", what, c.Log.CallID)
		}
		return nil
	}
	if err := check("effects", c.Effects); err != nil {
		return err
	}
	if err := check("reply", c.Reply); err != nil {
		return err
	}
	if c.Content != nil {
		if err := check("content", c.Content.Value); err != nil {
			return err
		}
	}
	if c.Context != nil {
		for k, v := range c.Context.Set {
			if err := check("context key "+k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *memoryNamespace) changeArtifact(c agent.ArtifactChange, operated bool) *agent.Artifact {
	old := n.artifacts[store.Target{Role: c.Role, Method: c.MethodName}]
	if old == nil && !c.Creates() {
		return nil // deleted meanwhile, so there is nothing to count
	}
	a := old.Apply(c)
	n.setArtifact(a, operated)
	return a
}

func (n *memoryNamespace) setArtifact(a *agent.Artifact, operated bool) {
	if len(a.Verdicts) > 0 {
		n.evidence.Judge(a.Role, a.MethodName)
	}
	n.artifacts[store.Target{Role: a.Role, Method: a.MethodName}] = a
	for _, g := range a.Generations {
		n.programs[g.CodeChecksum] = g.Code
	}
	n.ranking.SetArtifact(a.Role, a.MethodName, store.FiguresOf(a))
	n.changed(store.Change{Kind: store.ChangedArtifact, Role: a.Role, Method: a.MethodName, Revision: a.Revision,
		Operated: operated})
}

func (n *memoryNamespace) changeTool(c store.ToolChange) {
	if t, ok := c.Apply(n.ranking.Tool(c.Role)); ok {
		n.setTool(t)
	}
}

func (n *memoryNamespace) setTool(t *agent.Tool) {
	n.ranking.SetTool(t)
	n.changed(store.Change{Kind: store.ChangedTool, Role: t.Role, Revision: t.Revision})
}

// Call implements Namespace.
func (n *memoryNamespace) Call(_ context.Context, callID string) (store.Call, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.byID[callID]
	if c == nil {
		return store.Call{}, store.ErrNotFound
	}
	out := store.Call{Log: c.log}
	store.ForgetDebug(&out.Log, n.policy.Retention.ValueHours, n.now())
	if h := n.policy.Retention.ValueHours; h == 0 || n.now().Sub(c.at) < time.Duration(h)*time.Hour {
		out.Outcome, out.Effects = c.outcome, c.effects
	}
	return out, nil
}

// Previews implements Namespace.
func (n *memoryNamespace) Previews(_ context.Context, callIDs []string) (map[string]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[string]string{}
	for _, id := range callIDs {
		c := n.byID[id]
		if h := n.policy.Retention.ValueHours; c == nil || c.outcome == nil || h > 0 &&
			n.now().Sub(c.at) >= time.Duration(h)*time.Hour {
			continue
		}
		raw, err := c.outcome.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if text := store.Preview(raw); text != "" {
			out[id] = text
		}
	}
	return out, nil
}

// Replay implements Namespace.
func (n *memoryNamespace) Replay(_ context.Context, key string) (store.Idempotent, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, ok := n.replies[key]
	if !ok || n.now().Sub(k.at) >= store.KeyLife {
		return store.Idempotent{}, store.ErrNotFound
	}
	return k.reply, nil
}

// Content implements Namespace.
func (n *memoryNamespace) Content(_ context.Context, ref string) (json.RawMessage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if v, ok := n.content.Get(ref); ok {
		return v, nil
	}
	return nil, store.ErrNotFound
}

// Patterns implements Namespace.
func (n *memoryNamespace) Patterns(_ context.Context, role string) ([]agent.PatternEvent, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]agent.PatternEvent{}, n.patterns[role]...), nil
}

// Evidence implements Namespace.
func (n *memoryNamespace) Evidence(_ context.Context, role, method string) (agent.MethodEvidence, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.evidence.Of(role, method), nil
}

// AllEvidence implements Namespace.
func (n *memoryNamespace) AllEvidence(_ context.Context) ([]agent.MethodEvidence, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.evidence.Remarkable(), nil
}

// ListCalls implements Namespace.
func (n *memoryNamespace) ListCalls(_ context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	out := []agent.LogEntry{}
	skip, last := q.Before != "", q.Before
	session := func(id string) (agent.Session, error) {
		if s := n.sessions[id]; s != nil {
			return s.session, nil
		}
		return agent.Session{}, store.ErrNotFound
	}
	for _, c := range slices.Backward(n.calls) {
		if skip {
			skip = c.log.CallID != q.Before
			continue
		}
		if len(out) == q.Limit || q.Scan.Read(last) {
			break
		}
		last = c.log.CallID
		if q.Match(&c.log) && q.Owns(&c.log, session) {
			out = append(out, c.log)
			store.ForgetDebug(&out[len(out)-1], n.policy.Retention.ValueHours, n.now())
		}
	}
	return out, nil
}

// CallsAfter implements Namespace.
func (n *memoryNamespace) CallsAfter(_ context.Context, after string, limit int) ([]agent.LogEntry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	from := 0
	if after != "" {
		if from = 1 + slices.IndexFunc(n.calls, func(c *memoryCall) bool { return c.log.CallID == after }); from == 0 {
			return nil, store.ErrNotFound
		}
	}
	out := []agent.LogEntry{}
	for _, c := range n.calls[from:min(from+limit, len(n.calls))] {
		out = append(out, c.log)
		store.ForgetDebug(&out[len(out)-1], n.policy.Retention.ValueHours, n.now())
	}
	return out, nil
}

// Reserve implements Namespace.
func (n *memoryNamespace) Reserve(ctx context.Context, s agent.Spend) error {
	return n.spend(ctx, func(l *store.Ledger) { l.Reserve(s) })
}

// Settle implements Namespace.
func (n *memoryNamespace) Settle(ctx context.Context, s agent.Spend) error {
	return n.spend(ctx, func(l *store.Ledger) {
		if _, ok := l.Reservation(s.ID); ok {
			l.Settle(s)
		}
	})
}

// Forfeit implements Namespace.
func (n *memoryNamespace) Forfeit(ctx context.Context, id string) error {
	return n.spend(ctx, func(l *store.Ledger) {
		if s, ok := l.Reservation(id); ok {
			l.Settle(s)
		}
	})
}

func (n *memoryNamespace) spend(ctx context.Context, change func(*store.Ledger)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	change(n.ledger)
	return nil
}

// Spent implements Namespace.
func (n *memoryNamespace) Spent(_ context.Context, first, last agent.Day) (store.Spent, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ledger.Spent(first, last), nil
}

// ReserveWithin implements Namespace.
func (n *memoryNamespace) ReserveWithin(ctx context.Context, s agent.Spend, _ string, caps []store.Cap) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := store.RoomFor(s.Sum(), caps, n.useOf(caps)); err != nil {
		return err
	}
	if err := n.writable(ctx); err != nil {
		return err
	}
	n.ledger.Reserve(s)
	return nil
}

// UseOf implements Namespace.
func (n *memoryNamespace) UseOf(_ context.Context, caps []store.Cap) ([]store.Use, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.useOf(caps), nil
}

// useOf implements UseOf. The caller holds mu.
func (n *memoryNamespace) useOf(caps []store.Cap) []store.Use {
	uses := make([]store.Use, len(caps))
	for i := range caps {
		if caps[i].Scope != store.ScopeDaemon {
			uses[i] = n.ledger.Use(&caps[i])
			continue
		}
		for _, other := range n.namespaces {
			uses[i].Add(other.ledger.Use(&caps[i]))
		}
		for day, tokens := range n.gone {
			if day >= caps[i].First && day <= caps[i].Last {
				uses[i].Used += tokens
			}
		}
	}
	return uses
}

// Stored implements Namespace. It counts everything each time, as the reference for the running sums of other stores.
func (n *memoryNamespace) Stored(_ context.Context, owner string) (s store.Stored, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.Memory.namespaces {
		sums := m.stored()
		if m == n {
			s.Own, s.All = sums.Of(owner), sums.All
		} else {
			s.Others.Add(sums.All)
		}
	}
	return s, nil
}

// ListStored implements Namespace.
func (n *memoryNamespace) ListStored(_ context.Context, after string, limit int) ([]store.OwnerBytes, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sums := n.stored()
	return store.PageStored(sums.List(), after, limit), nil
}

// stored counts everything. The caller holds mu.
func (n *memoryNamespace) stored() (s store.Sums) {
	for _, x := range n.sessions {
		s.Add(x.session.Owner, store.Bytes{Contexts: store.SessionBytes(x.session) + store.ContextBytes(x.context)})
		for i := range x.records {
			s.Add(x.session.Owner, store.Bytes{Histories: int64(len(x.records[i].raw))})
		}
	}
	for _, c := range n.calls {
		kept := int64(len(c.effects)) + store.DebugBytes(&c.log)
		if c.outcome != nil {
			kept += int64(len(agent.Encoded(c.outcome)))
		}
		s.Add(n.ownerOf(c.log.SessionID, c.log.Owner), store.Bytes{Values: kept})
	}
	for _, k := range n.replies {
		s.Add(n.ownerOf(k.session, ""), store.Bytes{Values: int64(len(k.reply.Reply))})
	}
	for _, f := range n.files {
		s.Add(f.file.Owner, store.FileBytes(&f.file))
	}
	for _, a := range n.artifacts {
		store.ArtifactBytes(a, s.Add)
	}
	for _, role := range n.ranking.Roles() {
		store.ToolBytes(n.ranking.Tool(role), s.Add)
	}
	return s
}

// ownerOf returns the owner of a call's values: the session's owner or, if the session is gone, the owner named in the
// log entry.
func (n *memoryNamespace) ownerOf(session, named string) string {
	if x := n.sessions[session]; x != nil {
		return x.session.Owner
	}
	return cmp.Or(named, agent.LocalOwner)
}
