package agent

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
)

// Status of an outcome.
const (
	StatusOK    = "ok"
	StatusError = "error"
	// StatusRunning is the outcome status of a log entry whose call has not ended.
	StatusRunning = "running"
)

// ErrProvider and the other Err constants are the runtime's error types, a closed set. Programs may author errors of
// any lower-case type, including these; Outcome.Authored distinguishes them.
const (
	ErrProvider               = "provider"
	ErrInvalidCode            = "invalid_code"
	ErrExecution              = "execution"
	ErrTool                   = "tool_error"
	ErrInvalidInput           = "invalid_input"
	ErrTimeout                = "timeout"
	ErrCanceled               = "canceled"
	ErrBudgetExceeded         = "budget_exceeded"
	ErrResourceExhausted      = "resource_exhausted"
	ErrRunnerCrash            = "runner_crash"
	ErrDenied                 = "denied"
	ErrUnknownOutcome         = "unknown_outcome"
	ErrContractViolation      = "contract_violation"
	ErrLowUtility             = "low_utility"
	ErrWrongToolBoundary      = "wrong_tool_boundary"
	ErrUnsupportedCapability  = "unsupported_capability"
	ErrParseFailed            = "parse_failed"
	ErrNonSerializable        = "non_serializable_result"
	ErrDependencyPolicy       = "dependency_policy_violation"
	ErrToolRegistry           = "tool_registry_violation"
	ErrGuardrailExhausted     = "guardrail_retry_exhausted"
	ErrOutcomeRepairExhausted = "outcome_repair_retry_exhausted"
	ErrInvalidHistoryValue    = "invalid_history_value"
	ErrInvalidHistoryElement  = "invalid_history_element"
	ErrFileNotFound           = "file_not_found"
	ErrNotFound               = "not_found" // authored only
)

// ErrorTypes lists the runtime's error types.
func ErrorTypes() []string {
	return []string{ErrProvider, ErrInvalidCode, ErrExecution, ErrTool, ErrInvalidInput, ErrTimeout, ErrCanceled,
		ErrBudgetExceeded, ErrResourceExhausted, ErrRunnerCrash, ErrDenied, ErrUnknownOutcome, ErrContractViolation,
		ErrLowUtility,
		ErrWrongToolBoundary, ErrUnsupportedCapability, ErrParseFailed, ErrNonSerializable, ErrDependencyPolicy,
		ErrToolRegistry, ErrGuardrailExhausted, ErrOutcomeRepairExhausted, ErrInvalidHistoryValue,
		ErrInvalidHistoryElement, ErrFileNotFound}
}

// IsErrorType reports whether t is a valid error type of a program: a lower-case word of at most 64 letters, digits and
// underscores.
func IsErrorType(t string) bool {
	if len(t) == 0 || len(t) > 64 || t[0] < 'a' || t[0] > 'z' {
		return false
	}
	for i := range len(t) {
		if c := t[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_') {
			return false
		}
	}
	return true
}

// honest reports whether an error of that type means that the program has nothing to give, as opposed to a failure.
// Such errors never lead to another program.
func honest(errorType string) bool {
	switch errorType {
	case ErrLowUtility, ErrWrongToolBoundary, ErrUnsupportedCapability, ErrNotFound:
		return true
	}
	return false
}

// Retriable reports whether a failure of that type may pass by itself, if nothing more specific is known. Timeouts and
// exhausted memory are not retriable: the program would fail the same way again.
func Retriable(errorType string) bool {
	switch errorType {
	case ErrProvider, ErrInvalidCode, ErrRunnerCrash:
		return true
	}
	return false
}

// Outcome is the result of a call: ok with a Value, or error with a type and a message. The failure of a tool is an
// outcome, not a Go error.
type Outcome struct {
	Status       string
	Value        json.RawMessage // on ok: any compact JSON, never nil
	ErrorType    string          // on error
	ErrorMessage string          // on error
	Retriable    bool
	Authored     bool // the program itself returned the error
	ToolRole     string
	MethodName   string
	// Metadata holds details, such as a contract violation's mismatch or keywords that the program does not read.
	Metadata map[string]any
}

// OK reports whether the call ended with a value.
func (o Outcome) OK() bool { return o.Status == StatusOK }

// Failed returns an error outcome with the type's default for Retriable.
func Failed(errorType, message string) Outcome {
	return Outcome{Status: StatusError, ErrorType: errorType, ErrorMessage: message, Retriable: Retriable(errorType)}
}

// errorOutcome holds the members of the wire form except value.
type errorOutcome struct {
	Status       string         `json:"status"`
	OK           bool           `json:"ok"`
	ErrorType    string         `json:"error_type"`
	ErrorMessage string         `json:"error_message"`
	Retriable    bool           `json:"retriable"`
	Authored     bool           `json:"authored"`
	ToolRole     string         `json:"tool_role"`
	MethodName   string         `json:"method_name"`
	Metadata     map[string]any `json:"metadata,omitempty"`
}

// MarshalJSON returns the wire form.
func (o Outcome) MarshalJSON() ([]byte, error) {
	w := jsonenc.Writer{Buf: make([]byte, 0, 128+len(o.Value)+len(o.ErrorMessage))}
	o.AppendJSON(&w)
	return w.Buf, w.Err
}

// AppendJSON appends the wire form.
func (o *Outcome) AppendJSON(w *jsonenc.Writer) {
	w.Buf = append(w.Buf, '{')
	w.String("status", o.Status)
	w.Bool("ok", o.OK())
	if o.OK() {
		w.Raw("value", o.Value)
	} else {
		w.String("error_type", o.ErrorType)
		w.String("error_message", o.ErrorMessage)
		w.Bool("retriable", o.Retriable)
		w.Bool("authored", o.Authored)
	}
	w.String("tool_role", o.ToolRole)
	w.String("method_name", o.MethodName)
	if len(o.Metadata) > 0 {
		w.Value("metadata", o.Metadata)
	}
	w.Buf = append(w.Buf, '}')
}

// UnmarshalJSON decodes the wire form.
func (o *Outcome) UnmarshalJSON(data []byte) error {
	var w struct {
		errorOutcome
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*o = Outcome{Status: w.Status, Value: w.Value, ErrorType: w.ErrorType, ErrorMessage: w.ErrorMessage,
		Retriable: w.Retriable,
		Authored:  w.Authored, ToolRole: w.ToolRole, MethodName: w.MethodName, Metadata: w.Metadata}
	if o.OK() && o.Value == nil {
		o.Value = json.RawMessage("null")
	}
	return nil
}

// Kind returns the JSON kind of a value: object, array, string, number, boolean or null. It looks only at the first
// character; an empty value is null.
func Kind(value json.RawMessage) string {
	for _, b := range value {
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		case '{':
			return "object"
		case '[':
			return "array"
		case '"':
			return "string"
		case 't', 'f':
			return "boolean"
		case 'n':
			return "null"
		}
		return "number"
	}
	return "null"
}
