package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// pendingCall is a call whose lines are not in the files yet. It never changes.
type pendingCall struct {
	log   agent.LogEntry
	value valueLine
}

// valueLine is a line of values/: what a call answered, kept for as long as the policy keeps values.
type valueLine struct {
	CallID    string          `json:"call_id"`
	SessionID string          `json:"session_id"`
	At        int64           `json:"at"` // Unix milliseconds
	Outcome   json.RawMessage `json:"outcome,omitempty"`
	Effects   json.RawMessage `json:"effects,omitempty"`
	Key       *replyKey       `json:"key,omitempty"`
	Reply     json.RawMessage `json:"reply,omitempty"`
}

func (v *valueLine) empty() bool { return v.Outcome == nil && v.Effects == nil && v.Key == nil }

func (v *valueLine) encode() ([]byte, error) {
	b := make([]byte, 0, 128+len(v.Outcome)+len(v.Effects)+len(v.Reply))
	b = appendString(append(b, `{"call_id":`...), v.CallID)
	b = appendString(append(b, `,"session_id":`...), v.SessionID)
	w := lineWriter{b: b, full: true}
	w.int("at", v.At, false)
	w.rawAsIs("outcome", v.Outcome)
	w.rawAsIs("effects", v.Effects)
	if v.Key != nil {
		w.any("key", v.Key, false)
	}
	w.rawAsIs("reply", v.Reply)
	return append(w.b, '}'), w.err
}

// rawAsIs appends JSON that was compacted before.
func (w *lineWriter) rawAsIs(k string, v json.RawMessage) {
	if v != nil {
		w.key(k)
		w.b = append(w.b, v...)
	}
}

// applyCall puts a call in place. The caller holds mu.
func (s *Store) applyCall(e *entry) {
	c := &pendingCall{log: e.log, value: valueLine{e.log.CallID, e.Session, e.At, e.Outcome, e.Effects, e.Key, e.Reply}}
	s.calls = append(s.calls, c)
	s.callByID[e.log.CallID] = c
	if e.Key != nil {
		s.callByKey[e.Key.Key] = c
	}
	if ref := e.log.UserCorrectionReferenceCallID; ref != "" {
		s.corrections[ref] = e.log.CallID
	}
}

// correction is what the line of a re-ask says of the call that it corrects. The log is only ever appended to, so this
// is the one place where the pair stands: the line is indexed under both ids, and whoever reads the corrected call meets
// it on the way.
type correction struct {
	CallID    string `json:"call_id"`
	Corrected string `json:"user_correction_reference_call_id"`
}

// correctionIn reads the correction out of a line of the call log; ok is false for the many that hold none.
func correctionIn(line []byte) (c correction, ok bool) {
	if !bytes.Contains(line, []byte(`"user_correction_reference_call_id":"`)) {
		return c, false
	}
	// A call's arguments may name the same member: only the decoded line tells.
	return c, json.Unmarshal(line, &c) == nil && c.CallID != "" && c.Corrected != ""
}

// erased returns the call without what it says of a deleted session's arguments and values.
func (c *pendingCall) erased() *pendingCall {
	next := &pendingCall{log: c.log, value: valueLine{CallID: c.value.CallID, At: c.value.At}}
	store.EraseLog(&next.log)
	return next
}

func callKeys(line []byte) []uint64 {
	keys := idKeys(line)
	if c, ok := correctionIn(line); ok {
		keys = append(keys, jsonl.Key(c.Corrected))
	}
	return keys
}

func idKeys(line []byte) []uint64 {
	if id := jsonl.Member(line, "call_id"); id != "" {
		return []uint64{jsonl.Key(id)}
	}
	return nil
}

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

// callTime reads out of a line of the call log when it was there: calls take at most commitSlack.
func callTime(line []byte) (time.Time, bool) {
	v := struct {
		Timestamp time.Time `json:"timestamp"`
	}{}
	ok := json.Unmarshal(line, &v) == nil && !v.Timestamp.IsZero()
	return v.Timestamp.Add(commitSlack), ok
}

func valueTime(line []byte) (time.Time, bool) {
	v := struct {
		At int64 `json:"at"`
	}{}
	ok := json.Unmarshal(line, &v) == nil && v.At > 0
	return time.UnixMilli(v.At), ok
}

// Call is part of store.Store.
func (s *Store) Call(_ context.Context, callID string) (store.Call, error) {
	s.mu.RLock()
	c := s.callByID[callID]
	var out store.Call
	var v valueLine
	if c != nil {
		out.Log, v = c.log, c.value
	}
	correctedBy := s.corrections[callID]
	s.mu.RUnlock()
	if c != nil {
		out.Log.CorrectedBy = correctedBy
		return s.withValue(out, &v)
	}
	found := false
	if err := s.callLog.Find(jsonl.Key(callID), func(line []byte) bool {
		if c, ok := correctionIn(line); ok && c.Corrected == callID {
			correctedBy = c.CallID
			return false // the call itself stands before it
		}
		found = jsonl.Member(line, "call_id") == callID && json.Unmarshal(line, &out.Log) == nil
		return found
	}); err != nil {
		return store.Call{}, err
	}
	out.Log.CorrectedBy = correctedBy
	if !found {
		return store.Call{}, store.ErrNotFound
	}
	if err := s.values.Find(jsonl.Key(callID), func(line []byte) bool {
		return jsonl.Member(line, "call_id") == callID && json.Unmarshal(line, &v) == nil
	}); err != nil {
		return store.Call{}, err
	}
	return s.withValue(out, &v)
}

// withValue adds the outcome and the effects while they are kept.
func (s *Store) withValue(c store.Call, v *valueLine) (store.Call, error) {
	s.mu.RLock()
	hours := s.policy.Retention.ValueHours
	s.mu.RUnlock()
	if v.Outcome == nil && v.Effects == nil || hours > 0 && s.now().Sub(time.UnixMilli(v.At)) >= time.Duration(hours)*time.Hour {
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

// ListCalls is part of store.Store.
func (s *Store) ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	out := []agent.LogEntry{}
	s.mu.RLock()
	end := s.callLog.End()
	corrections := maps.Clone(s.corrections) // the re-asks among what is read below are added
	before := len(s.calls)
	if q.Before != "" && s.callByID[q.Before] != nil {
		before = slices.Index(s.calls, s.callByID[q.Before])
	} else if q.Before != "" {
		before = 0
	}
	inMemory := q.Before == "" || before > 0 || s.callByID[q.Before] != nil
	for _, c := range slices.Backward(s.calls[:max(before, 0)]) {
		if len(out) == q.Limit {
			break
		}
		if q.Match(&c.log) {
			out = append(out, c.log)
		}
	}
	s.mu.RUnlock()
	if len(out) == q.Limit {
		return s.linked(out, corrections, q.Before != "")
	}
	if !inMemory {
		at, err := s.callLog.Locate(jsonl.Key(q.Before), func(line []byte) bool { return jsonl.Member(line, "call_id") == q.Before })
		if err != nil || at == nil {
			return out, err
		}
		end = *at
	}
	err := s.callLog.Backward(ctx, end, func(line []byte) (bool, error) {
		if len(out) == q.Limit {
			return true, nil
		}
		if c, ok := correctionIn(line); ok {
			corrections[c.Corrected] = c.CallID
		}
		if q.SessionID != "" && !bytes.Contains(line, []byte(q.SessionID)) {
			return false, nil
		}
		var e agent.LogEntry
		if json.Unmarshal(line, &e) != nil {
			s.reportDamage("calls.jsonl") // the log is no source of truth
			return false, nil
		}
		if e.CallID == "" {
			return false, nil // set aside by a repair
		}
		if q.Match(&e) {
			out = append(out, e)
		}
		return false, nil
	})
	if err != nil {
		return out, err
	}
	return s.linked(out, corrections, q.Before != "")
}

// linked puts into the entries which call corrected them. corrections holds what was met on the way to them; below the
// first page a re-ask may stand before the page's first entry, where only the index knows it.
func (s *Store) linked(entries []agent.LogEntry, corrections map[string]string, below bool) ([]agent.LogEntry, error) {
	s.mu.RLock()
	window := time.Duration(s.policy.UserCorrection.WindowSeconds)*time.Second + commitSlack
	s.mu.RUnlock()
	for i := range entries {
		e := &entries[i]
		e.CorrectedBy = corrections[e.CallID]
		if e.CorrectedBy != "" || !below || e.Depth > 0 || e.ProgramSource == agent.SourceNone {
			continue
		}
		at, err := time.Parse(time.RFC3339, e.Timestamp)
		if err != nil {
			continue // damaged: the log is no source of truth
		}
		if err := s.callLog.FindWithin(jsonl.Key(e.CallID), at, at.Add(window), func(line []byte) bool {
			c, ok := correctionIn(line)
			if ok = ok && c.Corrected == e.CallID; ok {
				e.CorrectedBy = c.CallID
			}
			return ok
		}); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// Replay is part of store.Store.
func (s *Store) Replay(_ context.Context, key string) (store.Idempotent, error) {
	s.mu.RLock()
	c := s.callByKey[key]
	var v valueLine
	if c != nil {
		v = c.value
	}
	s.mu.RUnlock()
	if c == nil {
		if err := s.values.Find(jsonl.Key("key", key), func(line []byte) bool {
			v = valueLine{}
			return json.Unmarshal(line, &v) == nil && v.Key != nil && v.Key.Key == key
		}); err != nil {
			return store.Idempotent{}, err
		}
	}
	if v.Key == nil || v.Key.Key != key || s.now().Sub(time.UnixMilli(v.At)) >= store.KeyLife {
		return store.Idempotent{}, store.ErrNotFound
	}
	return store.Idempotent{Key: v.Key.Key, BodyHash: v.Key.BodyHash, CallID: v.Key.CallID, Reply: v.Reply}, nil
}

// Content is part of store.Store.
func (s *Store) Content(_ context.Context, ref string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.content.Get(ref); ok {
		return v, nil
	}
	return nil, store.ErrNotFound
}

// Patterns is part of store.Store.
func (s *Store) Patterns(_ context.Context, role string) ([]agent.PatternEvent, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]agent.PatternEvent{}, s.patterns[role]...), nil
}
