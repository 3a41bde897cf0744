package disk

import (
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// batch holds what earlier entries of the current batch change in a namespace and readers do not see yet. It is guarded
// by sequencer.mu.
type batch struct {
	sessions  []sessionSize
	artifacts []*artifact
	tools     []*agent.Tool
	contexts  []plannedContext // changes of session contexts
	created   []string         // ids of the sessions that the batch creates
	head      chain.Head       // of the audit trail; it has not begun while no entry of the batch is linked
}

// sessionSize is a session and the number of its records, planned ones included.
type sessionSize struct {
	session *session
	records int
}

// plannedContext is a change of a session's context.
type plannedContext struct {
	session *session
	change  *agent.ContextChange
}

// reset empties the batch and keeps its buffers. It clears those that would keep sessions from being freed.
func (b *batch) reset() {
	clear(b.sessions)
	clear(b.contexts)
	*b = batch{sessions: b.sessions[:0], artifacts: b.artifacts[:0], tools: b.tools[:0], contexts: b.contexts[:0],
		created: b.created[:0]}
}

// batchMark records how much a batch held at some point.
type batchMark struct {
	artifacts, tools, contexts int
	head                       chain.Head
}

func (b *batch) mark() batchMark {
	return batchMark{len(b.artifacts), len(b.tools), len(b.contexts), b.head}
}

// undo removes what was planned since the mark. Sessions held since then stay, which is harmless.
func (b *batch) undo(to batchMark) {
	b.artifacts, b.tools, b.contexts, b.head = b.artifacts[:to.artifacts], b.tools[:to.tools], b.contexts[:to.contexts],
		to.head
}

// session returns the session that earlier entries of the batch change, or nil. Later entries must change the same
// value: a checkpoint may have handed it to the cache and the cache may have dropped it, and another lookup would read
// its file.
func (b *batch) session(id string) *session {
	for i := range b.sessions {
		if b.sessions[i].session.id == id {
			return b.sessions[i].session
		}
	}
	return nil
}

// hold keeps a session in the batch.
func (b *batch) hold(x *session) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	b.sessions = append(b.sessions, sessionSize{x, x.size})
}

// records returns a pointer to the number of records of a held session, planned ones included.
func (b *batch) records(x *session) *int {
	for i := range b.sessions {
		if b.sessions[i].session == x {
			return &b.sessions[i].records
		}
	}
	// It cannot happen: planSession holds each session before a record is planned.
	panic("a session that the batch does not hold")
}

// artifact returns the last planned state of an artifact, or nil if none is planned.
func (b *batch) artifact(k artifactKey) *artifact {
	for _, x := range slices.Backward(b.artifacts) {
		if x.key == k {
			return x
		}
	}
	return nil
}

// plannedArtifact returns the artifact with the planned changes, or nil if there is none.
func (n *namespace) plannedArtifact(k artifactKey) (*agent.Artifact, error) {
	var err error
	x := n.batch.artifact(k)
	if x != nil {
		x, err = x.live()
	} else {
		x, err = n.artifacts.get(k)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return x.a, nil
}

// plannedTool returns the tool with the planned changes, or nil if there is none.
func (n *namespace) plannedTool(role string) *agent.Tool {
	for _, t := range slices.Backward(n.batch.tools) {
		if t.Role == role {
			return t
		}
	}
	n.shared.mu.RLock()
	defer n.shared.mu.RUnlock()
	return n.catalog.ranking.Tool(role)
}

// plan computes the changes of an entry without applying them.
func (n *namespace) plan(e *entry) error {
	if e.Create == nil && (e.Record != nil || e.Context != nil) {
		if err := n.planSession(e); err != nil {
			return err
		}
	}
	if err := n.planDecided(e); err != nil {
		return err
	}
	if err := n.planArtifacts(e); err != nil {
		return err
	}
	if err := n.planCounters(e); err != nil {
		return err
	}
	for i := range e.Tools {
		old := n.plannedTool(e.Tools[i].Role)
		if t, ok := e.Tools[i].Apply(old); ok {
			if e.Tools[i].Register != nil {
				e.growTool(old, t)
			}
			e.tools = append(e.tools, t)
			n.batch.tools = append(n.batch.tools, t)
		}
	}
	if e.Put != nil {
		e.growTool(n.plannedTool(e.Put.Role), e.Put)
		e.tools = append(e.tools, e.Put)
		n.batch.tools = append(n.batch.tools, e.Put)
	}
	if e.Record == nil {
		return nil
	}
	records := n.batch.records(e.planned.session)
	line, err := withSeq(e.Record, *records+1)
	if err != nil {
		return err
	}
	*records++
	e.Seq, e.meta.Seq, e.record = *records, *records, line
	if e.call != nil {
		e.call.log.ConversationHistorySize = *records
	}
	return nil
}

// planSession finds the session of an entry and keeps it for the rest of the batch.
func (n *namespace) planSession(e *entry) error {
	x := n.batch.session(e.Session)
	if x == nil {
		var err error
		if x, err = n.sessions.get(e.Session); err != nil {
			return err
		}
		n.batch.hold(x)
	}
	e.planned.session = x
	if e.Context != nil {
		n.batch.growContext(e)
	}
	return nil
}

// planDecided returns store.ErrConflict if a change was decided on another state of its artifact.
func (n *namespace) planDecided(e *entry) error {
	for i := range e.Artifacts {
		change := &e.Artifacts[i]
		if change.Decided == nil {
			continue
		}
		now, err := n.plannedArtifact(n.artifactKey(change.Role, change.MethodName))
		if err != nil {
			return err
		}
		if change.Conflicts(now) {
			return store.ErrConflict
		}
	}
	return nil
}

// planArtifacts computes the next state of each changed artifact.
func (n *namespace) planArtifacts(e *entry) error {
	for _, change := range e.Artifacts {
		k := n.artifactKey(change.Role, change.MethodName)
		old, err := n.plannedArtifact(k)
		if err != nil {
			return err
		}
		if old == nil && !change.Creates() { // it was deleted meanwhile, so nothing is counted
			e.Revisions = append(e.Revisions, 0)
			continue
		}
		next := &artifact{a: old.Apply(change), key: k, lsn: e.lsn}
		e.growArtifact(old, next.a)
		e.Revisions = append(e.Revisions, next.a.Revision)
		e.artifacts = append(e.artifacts, next)
		n.batch.artifacts = append(n.batch.artifacts, next)
	}
	return nil
}

// planCounters sets the counters in the log entry to those of its artifact after the call.
func (n *namespace) planCounters(e *entry) error {
	if e.call == nil {
		return nil
	}
	a, err := n.countedArtifact(e)
	if err != nil || a == nil {
		return err
	}
	l := &e.call.log
	store.FillLog(l, a)
	e.Counters = [5]int64{l.ArtifactSuccessCount, l.ArtifactFailureCount, l.ArtifactIntrinsicFailureCount,
		l.ArtifactAdaptiveFailureCount, l.ArtifactExtrinsicFailureCount}
	return nil
}

// countedArtifact returns the artifact whose counters the log entry holds, or nil if there is none.
func (n *namespace) countedArtifact(e *entry) (*agent.Artifact, error) {
	k := n.artifactKey(e.call.log.Role, e.call.log.Method)
	for _, x := range slices.Backward(e.artifacts) {
		if x.key == k {
			return x.a, nil
		}
	}
	if e.call.log.ProgramSource == agent.SourceNone {
		return nil, nil // a setter has no program
	}
	return n.plannedArtifact(k)
}
