package disk

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// valueLine is a line of values/: what a call answered, kept for as long as the policy keeps values.
type valueLine struct {
	CallID    string          `json:"call_id"`
	SessionID string          `json:"session_id"`
	Owner     string          `json:"owner,omitempty"` // left out for "local", and by earlier versions
	At        int64           `json:"at"`              // Unix milliseconds
	Outcome   json.RawMessage `json:"outcome,omitempty"`
	Effects   json.RawMessage `json:"effects,omitempty"`
	Key       *replyKey       `json:"key,omitempty"`
	Reply     json.RawMessage `json:"reply,omitempty"`
	Debug     int64           `json:"debug,omitempty"` // bytes of the log entry that go with it: prompts, the context
}

// size is what it takes.
func (v *valueLine) size() int64 {
	if v.empty() {
		return 0
	}
	return int64(len(v.Outcome)+len(v.Effects)+len(v.Reply)) + v.Debug
}

func (v *valueLine) empty() bool { return v.Outcome == nil && v.Effects == nil && v.Key == nil }

// append appends the line. Its JSON was compacted before.
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

// correction is what the line of a re-ask says of the call that it corrects. The log is only ever appended to, so this
// is the one place where the pair stands: the line is indexed under both ids, and whoever reads the corrected call meets
// it meanwhile.
type correction struct {
	CallID    string `json:"call_id"`
	Corrected string `json:"user_correction_reference_call_id"`
}

// correctionIn reads the correction out of a line of the call log; ok is false for the many that hold none.
func correctionIn(line []byte) (c correction, ok bool) {
	if !bytes.Contains(line, []byte(`"user_correction_reference_call_id":"`)) {
		return c, false
	}
	// A call's arguments may name the same member: only the decoded line decides.
	return c, json.Unmarshal(line, &c) == nil && c.CallID != "" && c.Corrected != ""
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
