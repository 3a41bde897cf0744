package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A journal collects what a run takes from outside, or hands out what an earlier run took. Clock and randomness are
// functions of the time and the seed that came with the request, so the two stand for all their readings.
type journal struct {
	limit     int
	entries   []journalEntry
	size      int
	truncated bool

	clock, randomness uint64 // readings, as the runner counted them
	reads             bool   // whether the program uses its context
	now               time.Time
	seed              uint64

	served *journalForm // what to serve; nil when effects are real
	used   []bool

	forms []json.RawMessage // of the params of the served asks, once they are needed: canonical
}

// journalForm is the stored form of a journal. It is opaque to others and its version is V.
type journalForm struct {
	V   int        `json:"v"`
	Now *time.Time `json:"now,omitempty"` // when the clock was read
	// when randomness was used; base64 would not survive a float, a number neither
	Seed       string         `json:"seed,omitempty"`
	Clock      uint64         `json:"clock,omitempty"`
	Randomness uint64         `json:"chance,omitempty"`
	Asks       []journalEntry `json:"asks,omitempty"`

	// What the session gave to the call and no log entry records: Replay puts it into the request, Run does not look.
	Context      map[string]json.RawMessage `json:"context,omitempty"`
	InputHistory json.RawMessage            `json:"input_history,omitempty"`
}

type journalEntry struct {
	Op     string          `json:"op"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result,omitempty"`
	Digest string          `json:"digest,omitempty"` // instead of a large Result that the session can give again
	Error  *journalError   `json:"error,omitempty"`
	Same   bool            `json:"same,omitempty"` // as the entry before it with the same Op and Params
}

type journalError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// journalVersion is that of journalForm.
const journalVersion = 1

const (
	// inlineAnswer is the largest answer about the session itself (history, content) that a journal holds in full; of a
	// larger one it keeps the digest, and a replay asks the session again.
	inlineAnswer = 4 << 10
	// inlineContext is the largest context that a journal holds: it is written with every call that uses it.
	inlineContext = 64 << 10
)

// open prepares the journal for a request: empty, or with the recorded effects to serve.
func (j *journal) open(recorded json.RawMessage, limit int) error {
	j.limit = limit
	if recorded == nil {
		return nil
	}
	j.served = &journalForm{}
	if err := json.Unmarshal(recorded, j.served); err != nil {
		return err
	}
	j.used = make([]bool, len(j.served.Asks))
	return nil
}

func (j *journal) replaying() bool { return j.served != nil }

// start returns the clock and the seed of the run.
func (j *journal) start(r *Request) (time.Time, uint64) {
	j.now, j.seed = r.Now, r.Seed
	if j.served != nil {
		if j.served.Now != nil {
			j.now = *j.served.Now
		}
		if s, err := base64.RawStdEncoding.DecodeString(j.served.Seed); err == nil && len(s) == 8 {
			j.seed = binary.LittleEndian.Uint64(s)
		}
	}
	if j.now.IsZero() {
		j.now = time.Now()
	}
	j.now = j.now.Round(0).UTC()
	return j.now, j.seed
}

// add notes one question and its answer.
func (j *journal) add(op string, params, result json.RawMessage, refusal *recurgent.Failure) {
	if j.truncated {
		return
	}
	e := journalEntry{Op: op, Params: params, Result: result}
	if refusal != nil {
		e.Result, e.Error = nil, &journalError{refusal.Type, refusal.Message}
	} else if ofSession(op) && len(result) > inlineAnswer {
		e.Result, e.Digest = nil, digest(result)
	}
	j.keep(e)
}

// repeat notes a question whose answer was the one before.
func (j *journal) repeat(op string, params json.RawMessage) {
	if !j.truncated {
		j.keep(journalEntry{Op: op, Params: params, Same: true})
	}
}

func (j *journal) keep(e journalEntry) {
	j.size += len(e.Params) + len(e.Result) + 64
	if j.size > j.limit {
		j.truncated, j.entries = true, nil
		return
	}
	j.entries = append(j.entries, e)
}

func ofSession(op string) bool { return op == wire.OpHistory || op == wire.OpContent }

// sameAnswer finds in the session's answer of today the one that the digest stands for: the same bytes or, of a
// history, its beginning, since records may have been added behind it.
func sameAnswer(op string, today json.RawMessage, want string) (json.RawMessage, bool) {
	if digest(today) == want {
		return today, true
	}
	var records []json.RawMessage
	if op != wire.OpHistory || json.Unmarshal(today, &records) != nil {
		return nil, false
	}
	h := sha256.New()
	h.Write([]byte{'['})
	out := []byte{'['}
	for i, r := range records {
		if i > 0 {
			h.Write([]byte{','})
			out = append(out, ',')
		}
		h.Write(r)
		out = append(out, r...)
		end, err := h.(interface{ Clone() (hash.Cloner, error) }).Clone()
		if err != nil {
			return nil, false
		}
		end.Write([]byte{']'})
		if base64.RawStdEncoding.EncodeToString(end.Sum(nil)) == want {
			return append(out, ']'), true
		}
	}
	return nil, false
}

func digest(b []byte) string {
	s := sha256.Sum256(b)
	return base64.RawStdEncoding.EncodeToString(s[:])
}

// has reports whether the recorded run asked the question.
func (j *journal) has(op string, params json.RawMessage) bool {
	return slices.ContainsFunc(j.served.Asks, func(e journalEntry) bool {
		return e.Op == op &&
			bytes.Equal(e.Params, params)
	})
}

// find takes the first unused entry that answers the question: the same one, or a fetch of the same address with
// other headers. For one that says "as before" it returns the entry before.
func (j *journal) find(op string, params json.RawMessage) *journalEntry {
	var before *journalEntry
	for i := range j.served.Asks {
		e := &j.served.Asks[i]
		if e.Op != op || !bytes.Equal(e.Params, params) {
			continue
		}
		if !e.Same {
			before = e
		}
		if !j.used[i] {
			j.used[i] = true
			return before
		}
	}
	if !wire.Fetches(op) {
		return nil
	}
	want := fetchKey(params)
	for i := range j.served.Asks {
		if e := &j.served.Asks[i]; !j.used[i] && e.Op == op && fetchKey(e.Params) == want {
			j.used[i] = true
			return e
		}
	}
	return nil
}

// findCanonical is find in the canonical form: with the mask in the place of a secret, the program may write it otherwise.
func (j *journal) findCanonical(op string, params json.RawMessage,
	canonical func(json.RawMessage) json.RawMessage) *journalEntry {
	if canonical == nil {
		return nil
	}
	if j.forms == nil {
		for i := range j.served.Asks {
			j.forms = append(j.forms, canonical(j.served.Asks[i].Params))
		}
	}
	form := canonical(params)
	for i := range j.served.Asks {
		e := &j.served.Asks[i]
		if j.used[i] || e.Op != op || e.Same || !bytes.Equal(j.forms[i], form) &&
			(!wire.Fetches(op) || fetchKey(j.forms[i]) != fetchKey(form)) {
			continue
		}
		j.used[i] = true
		return e
	}
	return nil
}

func fetchKey(params json.RawMessage) string {
	var q recurgent.Request
	if json.Unmarshal(params, &q) != nil {
		return "?"
	}
	return q.Method + " " + q.URL + "\n" + q.Body
}

// encode returns the stored form, nil when the run took nothing from outside. A run on recorded effects has theirs.
func (j *journal) encode(r *Request) (json.RawMessage, bool) {
	if j.served != nil {
		return r.Recorded, false
	}
	if j.truncated {
		return nil, true
	}
	context := j.reads && len(r.Context) > 0
	if j.clock == 0 && j.randomness == 0 && len(j.entries) == 0 && !context && r.InputHistory == nil {
		return nil, false
	}
	form := journalForm{V: journalVersion, Clock: j.clock, Randomness: j.randomness, Asks: j.entries,
		InputHistory: r.InputHistory}
	if context {
		form.Context = r.Context
		size := 0
		for k, v := range r.Context {
			size += len(k) + len(v)
		}
		if size > inlineContext || j.size+size > j.limit {
			return nil, true
		}
	}
	if j.clock > 0 {
		form.Now = &j.now
	}
	if j.randomness > 0 {
		form.Seed = base64.RawStdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, j.seed))
	}
	raw, err := encode(form, j.size)
	if err != nil || len(raw) > j.limit+j.limit/4 {
		return nil, true
	}
	return raw, false
}
