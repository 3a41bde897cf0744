package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// commit is an entry on its way to the journal.
type commit struct {
	entry *entry
	tail  []byte // of a call: its encoded entry behind the assigned figures
	alone bool   // must not share its batch
	// check works on the state just before the entry, in its turn: it may refuse, and complete the entry.
	check func(b *batch) error

	err    error
	signal chan bool // true: lead a batch; false: done
}

// batch is what the commits of a batch before the one in turn have changed, which readers do not see yet.
type batch struct {
	sessions  []sizeOf
	artifacts []*artifact
	tools     []*agent.Tool
	created   []string
	policies  int64
	refused   bool // of the entry in turn: what planning added is to be taken back
}

type sizeOf struct {
	s    *session
	size int
}

func (b *batch) reset() {
	*b = batch{b.sessions[:0], b.artifacts[:0], b.tools[:0], b.created[:0], 0, false}
}

// session returns the session that earlier commits of the batch change, or nil. It must be that very one: a checkpoint
// may have let it go to the cache, and the cache may have dropped it, so that another lookup would read its file.
func (b *batch) session(id string) *session {
	for i := range b.sessions {
		if b.sessions[i].s.id == id {
			return b.sessions[i].s
		}
	}
	return nil
}

// hold keeps a session for the rest of the batch.
func (b *batch) hold(x *session) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	b.sessions = append(b.sessions, sizeOf{x, x.size})
}

// records points to the number of records that a held session has after what is planned.
func (b *batch) records(x *session) *int {
	for i := range b.sessions {
		if b.sessions[i].s == x {
			return &b.sessions[i].size
		}
	}
	panic("a session that the batch does not hold") // plan holds every session before it plans a record of it
}

// commit makes the entry durable together with those that wait beside it, and applies it. One of those who wait
// leads: it writes the batch of all while the next one gathers. So a single client pays one fsync and no switch of
// goroutines, and many share one.
func (s *Store) commit(ctx context.Context, c *commit) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := s.Ready(); err != nil {
		return err
	}
	s.queueMu.Lock()
	s.queue = append(s.queue, c)
	if s.leading {
		c.signal = make(chan bool, 1)
		s.queueMu.Unlock()
		if lead := <-c.signal; !lead {
			return c.err
		}
		s.queueMu.Lock()
	}
	s.leading = true
	turn := s.take()
	s.queueMu.Unlock()
	defer s.handOver(c, turn)
	s.process(turn)
	return c.err
}

// handOver ends the leadership of c: the next one in the queue leads, and those whose batch it was learn their result.
func (s *Store) handOver(c *commit, turn []*commit) {
	s.queueMu.Lock()
	if len(s.queue) > 0 {
		s.queue[0].signal <- true
	} else {
		s.leading = false
	}
	s.queueMu.Unlock()
	for _, other := range turn {
		if other != c {
			other.signal <- false
		}
	}
}

// take removes the next batch from the queue: all that wait, or up to one that must be alone.
func (s *Store) take() []*commit {
	n := 1
	if !s.queue[0].alone {
		for n < len(s.queue) && !s.queue[n].alone {
			n++
		}
	}
	turn := s.queue[:n:n]
	s.queue = s.queue[n:]
	if len(s.queue) == 0 {
		s.queue = nil
	}
	return turn
}

// process plans, writes and applies a batch. It does not panic: the goroutine of one commit leads for all, so a panic
// would leave the others waiting. See prepare, segment.append and spoil for what becomes of one.
func (s *Store) process(turn []*commit) {
	s.seq.Lock()
	defer s.seq.Unlock()
	defer s.spoil(turn)
	s.frame.Reset()
	s.batch.reset()
	planned := 0
	next := s.journal.Next()
	for _, c := range turn {
		if c.err = s.Ready(); c.err != nil {
			continue
		}
		c.entry.lsn = next
		if c.err = s.prepare(c); c.err == nil {
			planned++
			next++
		}
	}
	if planned == 0 {
		return
	}
	if err := s.journal.Write(&s.frame); err != nil {
		s.fail(err)
		for _, c := range turn {
			if c.err == nil {
				c.err = fmt.Errorf("%w: %w", store.ErrReadOnly, err)
			}
		}
		return
	}
	s.fsyncs.Add(1)
	s.commits.Add(int64(planned))
	s.written.Add(int64(s.frame.Size()))
	s.applyAll(turn)
	if s.journal.Bytes() > 2*s.o.Segment {
		select {
		case s.kick <- struct{}{}:
		default: // it is awake
		}
	}
}

func (s *Store) applyAll(turn []*commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.spoil(turn) // before the flusher can look
	for _, c := range turn {
		if c.err == nil {
			s.apply(c.entry)
		}
	}
	s.tell()
}

// spoil recovers from a panic behind the planning of a batch. Its entries may be durable while memory holds half of
// one. So nothing in memory reaches the files any more, nothing more is taken, and the next start replays the journal.
func (s *Store) spoil(turn []*commit) {
	v := recover()
	if v == nil {
		return
	}
	s.log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("a commit panicked; restart the daemon, which replays the journal")
	err := fmt.Errorf("%w: a commit panicked: %v; the daemon must be restarted", store.ErrReadOnly, v)
	s.spoiled.Store(&trouble{err})
	for _, c := range turn {
		if c.err == nil {
			c.err = err
		}
	}
}

// tell gives the batch's changes to the watchers, in order. The caller holds mu, so that a watcher that stops is
// told nothing afterwards.
func (s *Store) tell() {
	for _, c := range s.changes {
		for _, changed := range s.watchers {
			changed(c)
		}
	}
	s.changes = s.changes[:0]
}

// prepare plans a commit and puts its bytes into the frame. What a refused one planned is taken back. A panic refuses
// that one commit only: planning changes nothing that others see.
func (s *Store) prepare(c *commit) (err error) {
	b := &s.batch
	artifacts, tools := len(b.artifacts), len(b.tools)
	defer func() {
		if v := recover(); v != nil {
			s.log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("planning a commit panicked")
			err = fmt.Errorf("planning a commit panicked: %v", v)
		}
		if err != nil {
			b.artifacts, b.tools = b.artifacts[:artifacts], b.tools[:tools]
		}
	}()
	if c.check != nil {
		err = c.check(b)
	}
	if err == nil {
		err = s.plan(c.entry, b)
	}
	if err != nil {
		return err
	}
	if c.tail != nil {
		var buf [160]byte
		s.frame.Add(c.entry.head(buf[:0]), c.tail)
		return nil
	}
	text, err := json.Marshal(c.entry)
	if err != nil {
		return err
	}
	s.frame.Add(text)
	return nil
}

// plan works out what an entry changes, without changing it. On recovery the assigned figures are given, and what the
// files have already is left out.
func (s *Store) plan(e *entry, b *batch) error {
	if e.Create == nil && (e.Record != nil || e.Context != nil) {
		x := b.session(e.Session)
		if x == nil {
			var err error
			if x, err = s.session(e.Session); err != nil {
				return err
			}
			b.hold(x)
		}
		e.planned.session = x
	}
	if err := s.planArtifacts(e, b); err != nil {
		return err
	}
	for i := range e.Tools {
		if t, ok := e.Tools[i].Apply(s.toolIn(b, e.Tools[i].Role)); ok {
			e.tools = append(e.tools, t)
			b.tools = append(b.tools, t)
		}
	}
	if e.Put != nil {
		e.tools = append(e.tools, e.Put)
		b.tools = append(b.tools, e.Put)
	}
	if e.Record == nil {
		return nil
	}
	size := b.records(e.planned.session)
	line, err := withSeq(e.Record, *size+1)
	if err != nil {
		return err
	}
	*size++
	e.Seq, e.meta.Seq, e.log.ConversationHistorySize, e.record = *size, *size, *size, line
	return nil
}

func (s *Store) planArtifacts(e *entry, b *batch) error {
	for _, change := range e.Artifacts {
		x, err := s.artifactIn(b, artifactKey{change.Role, change.MethodName})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var old *agent.Artifact
		if x != nil {
			old = x.a
		}
		if old == nil && change.Generation == nil { // deleted meanwhile: it counts nothing
			e.Revisions = append(e.Revisions, 0)
			continue
		}
		next := &artifact{a: old.Apply(change), key: artifactKey{change.Role, change.MethodName}, lsn: e.lsn}
		e.Revisions = append(e.Revisions, next.a.Revision)
		e.artifacts = append(e.artifacts, next)
		b.artifacts = append(b.artifacts, next)
	}
	if e.log.CallID == "" {
		return nil
	}
	x, err := s.artifactFor(e, b)
	if err != nil {
		return err
	}
	if x != nil {
		store.FillLog(&e.log, x.a)
		e.Counters = [5]int64{e.log.ArtifactSuccessCount, e.log.ArtifactFailureCount, e.log.ArtifactIntrinsicFailureCount, e.log.ArtifactAdaptiveFailureCount, e.log.ArtifactExtrinsicFailureCount}
	}
	return nil
}

// artifactFor finds the artifact whose counters the log entry tells; nil when there is none.
func (s *Store) artifactFor(e *entry, b *batch) (*artifact, error) {
	k := artifactKey{e.log.Role, e.log.Method}
	for _, x := range slices.Backward(e.artifacts) {
		if x.key == k {
			return x, nil
		}
	}
	if e.log.ProgramSource == agent.SourceNone {
		return nil, nil // a setter: nothing is stored under its name, and nothing need be looked for
	}
	x, err := s.artifactIn(b, k)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return x, err
}

func (s *Store) artifactIn(b *batch, k artifactKey) (*artifact, error) {
	for _, x := range slices.Backward(b.artifacts) {
		if x.key == k {
			if x.a == nil {
				return nil, store.ErrNotFound
			}
			return x, nil
		}
	}
	return s.artifact(k)
}

func (s *Store) toolIn(b *batch, role string) *agent.Tool {
	for _, t := range slices.Backward(b.tools) {
		if t.Role == role {
			return t
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ranking.Tool(role)
}

// apply puts a planned entry in place. The caller holds seq and mu.
func (s *Store) apply(e *entry) {
	s.applied = e.lsn
	if e.Create != nil {
		s.applyCreate(e)
	}
	if e.planned.session != nil {
		s.applySession(e)
	}
	for _, x := range e.artifacts {
		s.applyArtifact(x)
	}
	for _, t := range e.tools {
		if old := s.ranking.Tool(t.Role); old != nil && sameContract(old, t) {
			s.usageDirty = true
		} else {
			s.contractDirty = true
		}
		s.setTool(t)
		s.changed(store.Change{Kind: "tool", Role: t.Role, Revision: t.Revision})
	}
	for _, c := range e.Artifacts {
		if c.Generation != nil {
			s.programs[c.Generation.CodeChecksum] = c.Generation.Code
		}
	}
	if e.Pattern != nil {
		s.addPattern(e.Pattern)
	}
	if e.Content != nil {
		s.content.Put(*e.Content, e.Session, s.policy.Retention)
		s.contentDirty = true
	}
	if e.log.CallID != "" && !e.skipLog {
		s.applyCall(e)
	}
	if e.Policy != nil {
		s.policy, s.policyDirty = e.Policy, true
		s.policyRevision++
		s.changed(store.Change{Kind: "policy", Revision: s.policyRevision})
	}
	if e.Audit != nil {
		s.audits = append(s.audits, e.Audit)
	}
	for _, id := range e.Delete {
		s.applyDelete(id)
	}
	if e.Move != nil {
		s.applyMove(e)
	}
}

// sameContract reports whether only usage figures tell the two apart, without comparing texts: a contract that was
// not set anew shares its bytes.
func sameContract(a, b *agent.Tool) bool {
	same := func(x, y json.RawMessage) bool {
		return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	return a.Purpose == b.Purpose && same(a.Deliverable, b.Deliverable) && same(a.Acceptance, b.Acceptance) && same(a.FailurePolicy, b.FailurePolicy) &&
		same(a.Signature, b.Signature) && len(a.Methods) == 0 && len(b.Methods) == 0
}

func (s *Store) changed(c store.Change) {
	if len(s.watchers) > 0 {
		c.Namespace = agent.DefaultNamespace
		s.changes = append(s.changes, c)
	}
}

func (s *Store) applyCreate(e *entry) {
	x := newSession(e.Create.Session, e.Create.Context)
	x.lsn, x.dirty = e.lsn, true
	s.touched[x.id] = x
	s.sessionCount++
	if s.ids != nil {
		if i, found := slices.BinarySearch(s.ids, x.id); !found {
			s.ids = slices.Insert(s.ids, i, x.id)
		}
	}
}

func (s *Store) applySession(e *entry) {
	x := e.planned.session
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.record != nil && e.Seq == x.size+1 {
		x.size++
		x.pending = append(x.pending, e.record)
		x.remember(&e.meta, e.record)
		x.meta.HistorySize = x.size
	}
	if e.lsn > x.lsn {
		if e.Context != nil {
			next := maps.Clone(x.context)
			e.Context.Apply(next)
			x.context = next
		}
		x.meta.UpdatedAt = e.at()
		x.meta.Revision++
		x.lsn = e.lsn
	}
	x.dirty = true
	s.touched[x.id] = x
}

func (s *Store) applyArtifact(x *artifact) {
	s.dirty[x.key] = x
	s.indexDirty = true
	if x.a == nil {
		s.ranking.DropArtifact(x.key.role, x.key.method)
		s.changed(store.Change{Kind: "artifact", Role: x.key.role, Method: x.key.method})
		return
	}
	s.ranking.SetArtifact(x.key.role, x.key.method, store.FiguresOf(x.a))
	s.changed(store.Change{Kind: "artifact", Role: x.key.role, Method: x.key.method, Revision: x.a.Revision})
}

func (s *Store) applyDelete(id string) {
	x := s.touched[id]
	if x == nil {
		x, _ = s.sessions.GetIfPresent(id)
	}
	made := time.Time{}
	if x != nil {
		x.mu.Lock()
		x.gone, x.pending = true, nil
		made = x.meta.CreatedAt
		x.mu.Unlock()
	}
	delete(s.touched, id)
	s.sessions.Invalidate(id)
	s.gone[id] = made
	s.sessionCount--
	if i, found := slices.BinarySearch(s.ids, id); found {
		s.ids = slices.Delete(s.ids, i, i+1)
	}
	for i, c := range s.calls {
		if c.log.SessionID == id {
			s.calls[i] = c.erased()
			s.callByID[c.log.CallID] = s.calls[i]
		}
	}
	maps.DeleteFunc(s.callByKey, func(_ string, c *pendingCall) bool { return c.log.SessionID == id })
	s.forgetPatterns(id)
	s.content.Forget(id)
	s.contentDirty = true
}

// CommitCall is part of store.Store.
func (s *Store) CommitCall(ctx context.Context, c *store.CallCommit) error {
	e, tail, err := encodeCall(c, s.now())
	if err != nil {
		return err
	}
	if e.Record != nil || e.Context != nil {
		if _, err := s.session(c.SessionID); err != nil { // read here, so that the batch need not wait for a file
			return err
		}
	}
	if err := s.commit(ctx, &commit{entry: e, tail: tail}); err != nil {
		return err
	}
	if e.Record != nil {
		c.Record.Seq = e.Seq
		c.Log.ConversationHistorySize = e.Seq
	}
	c.Log.ArtifactSuccessCount, c.Log.ArtifactFailureCount = e.log.ArtifactSuccessCount, e.log.ArtifactFailureCount
	c.Log.ArtifactIntrinsicFailureCount, c.Log.ArtifactAdaptiveFailureCount = e.log.ArtifactIntrinsicFailureCount, e.log.ArtifactAdaptiveFailureCount
	c.Log.ArtifactExtrinsicFailureCount = e.log.ArtifactExtrinsicFailureCount
	return nil
}

// newEntry starts an entry of something else than a call.
func (s *Store) newEntry() *entry { return &entry{At: s.now().UnixMilli(), planned: &planned{}} }

func targetName(t store.Target) string { return strings.TrimSuffix(t.Role+"."+t.Method, ".") }
