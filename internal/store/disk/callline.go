package disk

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

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
