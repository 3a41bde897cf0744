package sandbox

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash"
	"slices"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A journal records what a run takes from outside, or serves what an earlier run took. Readings of clock and randomness
// are functions of the request's time and seed, so the two are recorded instead of the readings.
type journal struct {
	limit     int
	entries   []journalEntry
	size      int
	truncated bool

	clock, randomness uint64 // readings, as counted by the runner
	reads             bool   // the program uses its context
	now               time.Time
	seed              uint64

	served *journalForm // the effects to serve; nil if effects are real
	used   []bool       // entries of served that were used, by index

	forms []json.RawMessage // canonical params of the served asks; built when first needed
}

// journalForm is the stored form of a journal. Other packages treat it as opaque. V is its version.
type journalForm struct {
	V   int        `json:"v"`
	Now *time.Time `json:"now,omitempty"` // set if the clock was read
	// Seed is set if randomness was used. It is base64 of 8 little-endian bytes, because a JSON number would lose
	// digits as a float64.
	Seed       string         `json:"seed,omitempty"`
	Clock      uint64         `json:"clock,omitempty"`
	Randomness uint64         `json:"chance,omitempty"`
	Asks       []journalEntry `json:"asks,omitempty"`

	// Context and InputHistory are inputs from the session that no log entry records. Replay copies them into the
	// request; Run ignores them.
	Context      map[string]json.RawMessage `json:"context,omitempty"`
	InputHistory json.RawMessage            `json:"input_history,omitempty"`
}

type journalEntry struct {
	Op     string          `json:"op"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result,omitempty"`
	// Digest replaces a large Result that the session can supply again.
	Digest string        `json:"digest,omitempty"`
	Error  *journalError `json:"error,omitempty"`
	// Same means that the answer is that of the previous entry with the same Op and Params.
	Same bool `json:"same,omitempty"`
}

type journalError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// journalVersion is the current version of journalForm.
const journalVersion = 1

const (
	// inlineAnswer is the largest answer about the session itself (history, content), in bytes, that a journal holds in
	// full. It keeps the digest of a larger one, and a replay asks the session again.
	inlineAnswer = 4 << 10
	// inlineContext is the largest context, in bytes, that a journal holds. A context is stored with every call that
	// uses it.
	inlineContext = 64 << 10
)

// open prepares the journal for a request: empty, or with recorded effects to serve.
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

// add records a question and its answer, or its refusal.
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

// repeat records a question whose answer equals the previous one to it.
func (j *journal) repeat(op string, params json.RawMessage) {
	if !j.truncated {
		j.keep(journalEntry{Op: op, Params: params, Same: true})
	}
}

// keep adds an entry. Once the size exceeds the limit, the journal is truncated and drops all entries.
func (j *journal) keep(e journalEntry) {
	j.size += len(e.Params) + len(e.Result) + 64
	if j.size > j.limit {
		j.truncated, j.entries = true, nil
		return
	}
	j.entries = append(j.entries, e)
}

// ofSession reports whether the answer to op comes from the session, which can supply it again.
func ofSession(op string) bool { return op == wire.OpHistory || op == wire.OpContent }

// sameAnswer returns the part of today's answer that has the wanted digest: all of it or, for a history, a prefix of
// its records, because records may have been appended since.
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

// has reports whether the recorded run asked the same question.
func (j *journal) has(op string, params json.RawMessage) bool {
	return slices.ContainsFunc(j.served.Asks, func(e journalEntry) bool {
		return e.Op == op &&
			bytes.Equal(e.Params, params)
	})
}

// find marks the first unused entry that answers the question as used and returns it. The entry holds the same
// question, or a fetch that differs only in its headers. For a Same entry, find returns the entry that it repeats. It
// returns nil if there is none.
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

// findCanonical compares canonical forms: a program may spell a request differently if its secrets are masked. It
// returns nil without a canonical function.
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

// fetchKey returns the parts of a fetch that identify it; headers are ignored.
func fetchKey(params json.RawMessage) string {
	var q recurgent.Request
	if json.Unmarshal(params, &q) != nil {
		return "?"
	}
	return q.Method + " " + q.URL + "\n" + q.Body
}

// encode returns the stored form, or nil if the run took nothing from outside. It reports true if the journal is
// truncated. A replay returns the journal that it was served.
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

// Done is one host call of a program, as its journal records it.
type Done struct {
	Kind string `json:"kind"` // fetch, call, predict, history ...
	// Target is method and address, without user information, for a fetch, and role and method for a call.
	Target string `json:"target,omitempty"`
	Status int    `json:"status,omitempty"` // HTTP status of a fetch; 0 if there is none
	Error  string `json:"error_type,omitempty"`
	Again  bool   `json:"again,omitempty"` // asked before in the run, with the same answer
}

// Calls reports whether d is a nested call or delegation that was not refused.
func (d *Done) Calls() bool {
	return (d.Kind == wire.OpCall || d.Kind == wire.OpDelegate) && d.Error == ""
}

// DoneIn lists the host calls of a journal in order. It omits reads and writes of open files. The list is empty, not
// nil, if the journal is empty or unreadable.
func DoneIn(journal json.RawMessage) []Done {
	var form journalForm
	list := []Done{}
	if len(journal) == 0 || json.Unmarshal(journal, &form) != nil {
		return list
	}
	for i := range form.Asks {
		e := &form.Asks[i]
		if e.Op == wire.OpRead || e.Op == wire.OpWrite || e.Op == wire.OpClose {
			continue
		}
		d := Done{Kind: e.Op, Again: e.Same}
		if e.Error != nil {
			d.Error = e.Error.Type
		}
		switch e.Op {
		case wire.OpFetch, wire.OpFetchFile:
			var q recurgent.Request
			var got struct{ Status int }
			if json.Unmarshal(e.Params, &q) == nil {
				d.Target = cmp.Or(q.Method, "GET") + " " + fetch.SafeURL(q.URL)
			}
			if json.Unmarshal(e.Result, &got) == nil {
				d.Status = got.Status
			}
		case wire.OpCall, wire.OpDelegate:
			var q struct{ Role, Method string }
			if json.Unmarshal(e.Params, &q) == nil {
				d.Target = q.Role + "." + q.Method
			}
		}
		list = append(list, d)
	}
	return list
}

// Given holds what a journal records in addition to the answers that a replay serves.
type Given struct {
	Context      map[string]json.RawMessage // context of the session; nil if the program did not read it
	InputHistory json.RawMessage            // nil if the call had none
	Fetched      []string                   // requested addresses, without user information
}

// Journalled reads a journal. It returns the zero Given for one that cannot be read; replaying such a journal fails
// with the reason.
func Journalled(journal json.RawMessage) Given {
	var form journalForm
	if len(journal) == 0 || json.Unmarshal(journal, &form) != nil {
		return Given{}
	}
	g := Given{Context: form.Context, InputHistory: form.InputHistory}
	for i := range form.Asks {
		var q recurgent.Request
		if e := &form.Asks[i]; wire.Fetches(e.Op) && !e.Same && json.Unmarshal(e.Params, &q) == nil {
			g.Fetched = append(g.Fetched, fetch.SafeURL(q.URL))
		}
	}
	return g
}

// EmptyJournal returns the effect journal of a call that took nothing from outside. A Request that has it as Recorded
// gets no real effects.
func EmptyJournal() json.RawMessage {
	return json.RawMessage(`{"v":` + strconv.Itoa(journalVersion) + `}`)
}
