package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
)

// Values of Record.Speaker.
const (
	SpeakerUser  = "user"  // a client's call
	SpeakerTool  = "tool"  // a nested call of a tool that a person or a program registered
	SpeakerAgent = "agent" // any other nested call
)

// Record is the history record of one call (seed 000). The first nine JSON keys are always present; the rest are
// optional additions. A record holds the class of the answer, never the value.
type Record struct {
	CallID string `json:"call_id"`
	// Seq numbers the session's records from 1 without gaps; the store assigns it.
	Seq            int               `json:"seq"`
	Timestamp      string            `json:"timestamp"`
	Speaker        string            `json:"speaker"`
	Role           string            `json:"role"`
	MethodName     string            `json:"method_name"`
	Args           []json.RawMessage `json:"args"`
	Kwargs         json.RawMessage   `json:"kwargs"` // an object
	OutcomeSummary OutcomeSummary    `json:"outcome_summary"`

	TraceID       string  `json:"trace_id,omitempty"`
	ParentCallID  string  `json:"parent_call_id,omitempty"`
	AttemptID     string  `json:"attempt_id,omitempty"`
	Depth         int     `json:"depth"`
	DurationMs    float64 `json:"duration_ms"`
	ErrorType     string  `json:"error_type,omitempty"`
	ErrorMessage  string  `json:"error_message,omitempty"`
	ProgramSource string  `json:"program_source,omitempty"`
	ArtifactHit   bool    `json:"artifact_hit"`

	Extra map[string]json.RawMessage `json:"-"` // keys of a newer version, kept unchanged
}

// OutcomeSummary is an outcome in the history, without the value itself.
type OutcomeSummary struct {
	Status     string  `json:"status"`
	OK         bool    `json:"ok"`
	ErrorType  *string `json:"error_type"` // null on ok
	Retriable  bool    `json:"retriable"`
	ValueClass string  `json:"value_class,omitempty"`

	// FailureClass is the class of the failure, or of the failure of a stored program that was repaired within the
	// call.
	FailureClass Class `json:"failure_class,omitempty"`

	ContentRef    string `json:"content_ref,omitempty"`
	ContentKind   string `json:"content_kind,omitempty"`
	ContentBytes  int    `json:"content_bytes,omitempty"`
	ContentDigest string `json:"content_digest,omitempty"`

	SourceCount   int    `json:"source_count,omitempty"`
	PrimaryURI    string `json:"primary_uri,omitempty"`
	RetrievalMode string `json:"retrieval_mode,omitempty"`
}

// Summarize returns the outcome without its value.
func Summarize(o Outcome) OutcomeSummary {
	s := OutcomeSummary{Status: o.Status, OK: o.OK(), Retriable: o.Retriable}
	if o.OK() {
		s.ValueClass = Kind(o.Value)
	} else {
		s.ErrorType = &o.ErrorType
	}
	return s
}

// plainRecord is Record without its methods, so that encoding it does not recurse into MarshalJSON.
type plainRecord Record

// recordCode encodes the fields of a record.
var recordCode = jsonenc.For[plainRecord]()

// MarshalJSON encodes the record, followed by the keys of Extra.
func (r Record) MarshalJSON() ([]byte, error) {
	w := jsonenc.Writer{Buf: make([]byte, 0, 768)}
	r.AppendJSON(&w)
	return w.Buf, w.Err
}

// AppendJSON appends the result of MarshalJSON.
func (r *Record) AppendJSON(w *jsonenc.Writer) {
	recordCode.Append(w, (*plainRecord)(r))
	if len(r.Extra) == 0 {
		return
	}
	extra, err := json.Marshal(r.Extra)
	if err != nil {
		w.Err = errors.Join(w.Err, fmt.Errorf("extra keys of record %s: %w", r.CallID, err))
		return
	}
	// Replace the closing brace of the fields and the opening brace of extra by a comma.
	w.Buf[len(w.Buf)-1] = ','
	w.Buf = append(w.Buf, extra[1:]...)
}

// UnmarshalJSON decodes a record. Unknown keys go to Extra.
func (r *Record) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*plainRecord)(r)); err != nil {
		return err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	maps.DeleteFunc(all, func(k string, _ json.RawMessage) bool { return recordKeys[k] })
	r.Extra = nil
	if len(all) > 0 {
		r.Extra = all
	}
	return nil
}

// recordKeys holds the JSON keys of Record's fields; a test compares it with the struct.
var recordKeys = map[string]bool{"call_id": true, "seq": true, "timestamp": true, "speaker": true, "role": true,
	"method_name": true,
	"args":        true, "kwargs": true, "outcome_summary": true, "trace_id": true, "parent_call_id": true,
	"attempt_id": true,
	"depth":      true, "duration_ms": true, "error_type": true, "error_message": true, "program_source": true,
	"artifact_hit": true}
