package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
)

// calls is the part that commits calls and holds the call log and the values. A call is pending until the flusher has
// written its lines.
type calls struct {
	n *namespace

	entries *jsonl.Log // calls.jsonl
	values  *jsonl.Log // values/: outcomes, effects and replies

	pending     []*pendingCall // in order of commits; guarded by shared.mu, as all below
	byID        map[string]*pendingCall
	byKey       map[string]*pendingCall // by idempotency key
	corrections map[string]string       // corrected call to re-ask, for pending re-asks
}

const callLogFile = "calls.jsonl"

// callText holds the lines of calls that are being written. The namespaces share its buffers, because only one writes
// at a time.
type callText struct{ entries, values jsonl.Text }

// pendingCall is a call whose lines are not in the files yet. It does not change after it was applied.
type pendingCall struct {
	log   agent.LogEntry
	value valueLine
}

func newCalls(n *namespace) *calls {
	p := &calls{n: n, byID: map[string]*pendingCall{}, byKey: map[string]*pendingCall{},
		corrections: map[string]string{}}
	o := jsonl.Options{Files: &n.files.Replacer, Bytes: n.o.LogSegment, Now: n.now, Lost: n.files.reportLost,
		Lock: func(m *locks.RWMutex) { m.Rank(n.order, rankLines) }}
	o.Dir, o.Current, o.Keys, o.Time = "calls", callLogFile, callKeys, callTime
	p.entries = jsonl.New(o)
	o.Dir, o.Current, o.Keys, o.Time = "values", "", valueKeys, valueTime
	p.values = jsonl.New(o)
	return p
}

// apply adds a call. The caller holds shared.mu.
func (p *calls) apply(e *entry) {
	c := e.call
	c.value = valueLine{CallID: c.log.CallID, SessionID: e.Session, Owner: c.log.Owner, At: e.At, Outcome: e.Outcome,
		Effects: e.Effects, Key: e.Key, Reply: e.Reply, Debug: store.DebugBytes(&c.log)}
	if x := e.planned.session; x != nil && c.value.Owner == "" {
		c.value.Owner = agent.LoggedOwner(x.meta.Owner)
	}
	p.n.stored.addValue(&c.value, 1)
	p.pending = append(p.pending, c)
	p.byID[c.log.CallID] = c
	if e.Key != nil {
		p.byKey[e.Key.Key] = c
	}
	if ref := c.log.UserCorrectionReferenceCallID; ref != "" {
		p.corrections[ref] = c.log.CallID
	}
}

// erase erases the arguments and values of pending calls of a deleted session. The caller holds shared.mu.
func (p *calls) erase(session string) {
	for i, c := range p.pending {
		if c.log.SessionID == session {
			p.n.stored.addValue(&c.value, -1)
			p.pending[i] = c.erased()
			p.byID[c.log.CallID] = p.pending[i]
		}
	}
	maps.DeleteFunc(p.byKey, func(_ string, c *pendingCall) bool { return c.log.SessionID == session })
}

// erased returns the call without arguments and values.
func (c *pendingCall) erased() *pendingCall {
	next := &pendingCall{log: c.log, value: valueLine{CallID: c.value.CallID, At: c.value.At}}
	store.EraseLog(&next.log)
	return next
}

// write appends the lines of pending calls. During an export it closes no segment.
func (p *calls) write(text *callText, list []*pendingCall, exporting bool) error {
	if len(list) == 0 {
		return nil
	}
	if err := text.encode(list); err != nil {
		return err
	}
	for _, l := range []*jsonl.Log{p.entries, p.values} {
		next := l.Rotate
		if exporting {
			next = l.SyncNames
		}
		if err := next(); err != nil {
			return err
		}
	}
	if err := p.values.Append(&text.values); err != nil {
		return err
	}
	if err := p.entries.Append(&text.entries); err != nil {
		return err
	}
	// Under one lock, so readers find each call either among the pending ones or in the logs.
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.values.Publish(&text.values)
	p.entries.Publish(&text.entries)
	p.n.stored.published(list)
	p.written(list)
	return nil
}

// encode encodes the lines of calls.
func (t *callText) encode(list []*pendingCall) error {
	t.entries.Reset(len(list))
	t.values.Reset(len(list))
	for _, c := range list {
		if err := t.entries.Add(func(b []byte) ([]byte, error) { return appendLog(b, &c.log) }); err != nil {
			return err
		}
		if c.value.empty() {
			continue
		}
		if err := t.values.Add(c.value.append); err != nil {
			return err
		}
	}
	return nil
}

// written drops calls whose lines were written from the pending ones. The caller holds shared.mu.
func (p *calls) written(list []*pendingCall) {
	for i, c := range list {
		// The call was erased after the list was made. Its line was written in full and is erased next, which subtracts
		// it.
		if p.pending[i] != c {
			p.n.stored.addValue(&c.value, 1)
		}
	}
	p.pending = p.pending[len(list):]
	if len(p.pending) == 0 {
		p.pending = nil
	}
	for _, c := range list {
		delete(p.byID, c.log.CallID)
		delete(p.corrections, c.log.UserCorrectionReferenceCallID)
		if c.value.Key != nil {
			delete(p.byKey, c.value.Key.Key)
		}
	}
}

// CommitCall is part of store.Namespace.
func (p *calls) CommitCall(ctx context.Context, c *store.CallCommit) error {
	w := encoders.Get().(*jsonenc.Writer)
	defer release(w)
	e, err := encodeCall(w, p.n.name, c, p.n.now())
	if err != nil {
		return err
	}
	e.namespace = p.n
	if c.Repeated {
		return p.repeat(ctx, e, c, w.Buf)
	}
	if e.Record != nil || e.Context != nil {
		// Read the session's file here instead of in the batch, which other commits wait for.
		if _, err := p.n.sessions.get(c.SessionID); err != nil {
			return err
		}
	}
	late := !adopts(c)
	e.waits = commit{entry: e, tail: w.Buf, late: late}
	if c.Fence != 0 {
		e.waits.check = func() error { return p.n.members.Fenced(p.n.name, c.SessionID, c.Fence) }
	}
	if err := p.n.streams.commitFiles(ctx, c.Files, func() error { return p.n.commit(ctx, &e.waits) }); err != nil {
		return err
	}
	if c.Ordered != nil {
		c.Ordered()
	}
	if late && p.n.o.Interval == 0 {
		if err := p.n.sequencer.await(e.lsn); err != nil {
			return err
		}
	}
	p.assign(c, e)
	return nil
}

// assign copies the values that the store assigned to the entry into the commit.
func (p *calls) assign(c *store.CallCommit, e *entry) {
	if e.Record != nil {
		c.Record.Seq = e.Seq
		c.Log.ConversationHistorySize = e.Seq
	}
	setCounters(&c.Log, e.Counters)
}

// adopts reports whether the call adopts a new program or registers a tool.
func adopts(c *store.CallCommit) bool {
	return slices.ContainsFunc(c.Artifacts, func(a agent.ArtifactChange) bool { return a.Generation != nil }) ||
		slices.ContainsFunc(c.Tools, func(t store.ToolChange) bool { return t.Register != nil })
}

// Call is part of store.Namespace.
func (p *calls) Call(_ context.Context, callID string) (store.Call, error) {
	var out store.Call
	var v valueLine
	p.n.mu.RLock()
	c := p.byID[callID]
	if c != nil {
		out.Log, v = c.log, c.value
	}
	correctedBy := p.corrections[callID]
	p.n.mu.RUnlock()
	if c == nil {
		if err := p.findCall(callID, &out.Log, &correctedBy); err != nil {
			return store.Call{}, err
		}
		if err := p.findValue(callID, &v); err != nil {
			return store.Call{}, err
		}
	}
	out.Log.CorrectedBy = correctedBy
	return p.withValue(out, &v)
}

// findCall reads a call's line from the call log, and the id of the call that corrected it. It returns
// store.ErrNotFound if there is no such line.
func (p *calls) findCall(callID string, entry *agent.LogEntry, correctedBy *string) error {
	found := false
	err := p.entries.Find(jsonl.Key(callID), func(line []byte) bool {
		if c, ok := correctionIn(line); ok && c.Corrected == callID {
			*correctedBy = c.CallID
			return false // the call itself comes before its correction
		}
		found = jsonl.Member(line, "call_id") == callID && json.Unmarshal(line, entry) == nil
		return found
	})
	if err == nil && !found {
		return store.ErrNotFound
	}
	return err
}

// Replay is part of store.Namespace.
func (p *calls) Replay(_ context.Context, key string) (store.Idempotent, error) {
	var v valueLine
	p.n.mu.RLock()
	c := p.byKey[key]
	if c != nil {
		v = c.value
	}
	p.n.mu.RUnlock()
	if c == nil {
		if err := p.values.Find(jsonl.Key("key", key), func(line []byte) bool {
			v = valueLine{}
			return json.Unmarshal(line, &v) == nil && v.Key != nil && v.Key.Key == key
		}); err != nil {
			return store.Idempotent{}, err
		}
	}
	if v.Key == nil || v.Key.Key != key || p.n.now().Sub(time.UnixMilli(v.At)) >= store.KeyLife {
		return store.Idempotent{}, store.ErrNotFound
	}
	return store.Idempotent{Key: v.Key.Key, BodyHash: v.Key.BodyHash, CallID: v.Key.CallID, Reply: v.Reply}, nil
}

// valueLine is a line of values/: the results of a call, kept for as long as the policy keeps values.
type valueLine struct {
	CallID    string          `json:"call_id"`
	SessionID string          `json:"session_id"`
	Owner     string          `json:"owner,omitempty"` // missing for "local" and in lines of earlier versions
	At        int64           `json:"at"`              // Unix milliseconds
	Outcome   json.RawMessage `json:"outcome,omitempty"`
	Effects   json.RawMessage `json:"effects,omitempty"`
	Key       *replyKey       `json:"key,omitempty"`
	Reply     json.RawMessage `json:"reply,omitempty"`
	// bytes of debug data in the log entry that expire together with the value: prompts and the context
	Debug int64 `json:"debug,omitempty"`
}

// size returns the bytes that the stored value takes.
func (v *valueLine) size() int64 {
	if v.empty() {
		return 0
	}
	return int64(len(v.Outcome)+len(v.Effects)+len(v.Reply)) + v.Debug
}

// empty reports whether there is nothing to write.
func (v *valueLine) empty() bool { return v.Outcome == nil && v.Effects == nil && v.Key == nil }

// append appends the line without a newline. Its JSON members are compact already.
func (v *valueLine) append(b []byte) ([]byte, error) {
	w := jsonenc.Writer{Buf: append(b, '{')}
	w.String("call_id", v.CallID)
	w.String("session_id", v.SessionID)
	if v.Owner != "" {
		w.String("owner", v.Owner)
	}
	w.Int("at", v.At)
	if v.Outcome != nil {
		w.Verbatim("outcome", v.Outcome)
	}
	if v.Effects != nil {
		w.Verbatim("effects", v.Effects)
	}
	if v.Key != nil {
		w.Value("key", v.Key)
	}
	if v.Reply != nil {
		w.Verbatim("reply", v.Reply)
	}
	if v.Debug > 0 {
		w.Int("debug", v.Debug)
	}
	return append(w.Buf, '}'), w.Err
}

// correction is the pair of calls in the line of a re-ask. The log is append-only, so the corrected call's own line
// cannot name the re-ask. The re-ask's line is therefore indexed under both ids, and a reader who looks for the
// corrected call finds the re-ask first.
type correction struct {
	CallID    string `json:"call_id"`
	Corrected string `json:"user_correction_reference_call_id"`
}

// correctionIn returns the correction in a line of the call log. ok is false for lines without one.
func correctionIn(line []byte) (c correction, ok bool) {
	if !bytes.Contains(line, []byte(`"user_correction_reference_call_id":"`)) {
		return c, false
	}
	// Arguments of a call may contain such a member, so the decoded line decides.
	return c, json.Unmarshal(line, &c) == nil && c.CallID != "" && c.Corrected != ""
}

// callKeys returns the keys of a line of the call log: its id and that of the call it corrects.
func callKeys(line []byte) []uint64 {
	keys := idKeys(line)
	if c, ok := correctionIn(line); ok {
		keys = append(keys, jsonl.Key(c.Corrected))
	}
	return keys
}

// idKeys returns the key of the line's call id, if it has one.
func idKeys(line []byte) []uint64 {
	if id := jsonl.Member(line, "call_id"); id != "" {
		return []uint64{jsonl.Key(id)}
	}
	return nil
}

// valueKeys returns the keys of a line of values: its call id and its idempotency key.
func valueKeys(line []byte) []uint64 {
	keys := idKeys(line)
	if bytes.Contains(line, []byte(`,"key":{"k":`)) {
		v := valueLine{}
		if json.Unmarshal(line, &v) == nil && v.Key != nil {
			keys = append(keys, jsonl.Key("key", v.Key.Key))
		}
	}
	return keys
}

// callTime returns a time by which a line of the call log had been appended: its timestamp is the start of the call,
// and no call lasts longer than commitSlack.
func callTime(line []byte) (time.Time, bool) {
	v := struct {
		Timestamp time.Time `json:"timestamp"`
	}{}
	ok := json.Unmarshal(line, &v) == nil && !v.Timestamp.IsZero()
	return v.Timestamp.Add(commitSlack), ok
}

// valueTime returns when a line of values was committed.
func valueTime(line []byte) (time.Time, bool) {
	v := struct {
		At int64 `json:"at"`
	}{}
	ok := json.Unmarshal(line, &v) == nil && v.At > 0
	return time.UnixMilli(v.At), ok
}

// Previews is part of store.Namespace.
func (p *calls) Previews(ctx context.Context, callIDs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, id := range callIDs {
		var v valueLine
		p.n.mu.RLock()
		c := p.byID[id]
		if c != nil {
			v = c.value
		}
		p.n.mu.RUnlock()
		if c == nil {
			if err := p.findValue(id, &v); err != nil {
				return nil, err
			}
		}
		if p.expired(&v) {
			continue
		}
		if text := store.Preview(v.Outcome); text != "" {
			out[id] = text
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return out, nil
}

// findValue reads the stored value of a call. It leaves v unchanged if there is none.
func (p *calls) findValue(callID string, v *valueLine) error {
	return p.values.Find(jsonl.Key(callID), func(line []byte) bool {
		return jsonl.Member(line, "call_id") == callID && json.Unmarshal(line, v) == nil
	})
}

// expired reports whether the policy no longer allows the value to be read.
func (p *calls) expired(v *valueLine) bool {
	hours := p.n.policies.current().Retention.ValueHours
	return hours > 0 && p.n.now().Sub(time.UnixMilli(v.At)) >= time.Duration(hours)*time.Hour
}

// withValue adds the outcome and the effects to the call, unless they have expired.
func (p *calls) withValue(c store.Call, v *valueLine) (store.Call, error) {
	hours := p.n.policies.current().Retention.ValueHours
	store.ForgetDebug(&c.Log, hours, p.n.now())
	if v.Outcome == nil && v.Effects == nil || p.expired(v) {
		return c, nil
	}
	if v.Outcome != nil {
		c.Outcome = &agent.Outcome{}
		if err := json.Unmarshal(v.Outcome, c.Outcome); err != nil {
			return store.Call{}, err
		}
	}
	c.Effects = v.Effects
	return c, nil
}
