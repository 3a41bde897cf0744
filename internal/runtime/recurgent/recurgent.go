// Package recurgent is what forged programs import from us, along with its subpackage html. It defines a call and every
// means by which a program can reach beyond itself. It depends only on the standard library, because the gate
// type-checks programs against it and the interpreter runs them on it.
//
// Everything in this file is the interface of programs and part of `abi: 1` (docs/architecture.md): additions are
// welcome, changes are not. host.go is the runner's side and hidden from programs.
package recurgent

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Call is one call of the program: its input, the memory of its session, and access to other tools and the network. It
// belongs to one run and must not be kept.
type Call struct {
	Role, Method, CallID, TraceID string

	Depth int // 0 for a client's call, 1 and more for calls by programs
	// Args are decoded JSON: float64, string, bool, nil, []any, map[string]any, and json.Number for whole numbers that
	// float64 cannot represent. Args is never nil.
	Args    []any
	Kwargs  map[string]any // keyword arguments, decoded as Args are; never nil
	Context map[string]any // the session's memory; changes are kept only when the call ends ok

	host         Host
	rawArgs      []json.RawMessage
	rawKwargs    map[string]json.RawMessage
	inputHistory json.RawMessage
	made         []*File
	logged       int // lines logged so far
}

// Arg returns the positional argument i, or the keyword argument name if there is none, or nil if there is neither.
func (c *Call) Arg(i int, name string) any {
	if i >= 0 && i < len(c.Args) {
		return c.Args[i]
	}
	return c.Kwargs[name]
}

// Bind decodes the keyword arguments into the struct that v points to, matching json tags as encoding/json does. Fields
// that no keyword argument sets take the positional arguments, in field order. If an argument does not fit, the error
// names the field. Whole numbers are exact: if a float64 would change one, Bind panics and names the field.
func (c *Call) Bind(v any) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() || rv.Elem().Kind() != reflect.Struct {
		return errors.New("recurgent: Bind needs a pointer to a struct")
	}
	named := map[string]json.RawMessage{}
	for k, raw := range c.rawKwargs {
		named[k] = raw
	}
	next := 0
	rt := rv.Elem().Type()
	for i := range rt.NumField() {
		name, ok := fieldName(rt.Field(i))
		if !ok || hasKey(named, name) {
			continue
		}
		if next == len(c.rawArgs) {
			break
		}
		named[name] = c.rawArgs[next]
		next++
	}
	object, err := json.Marshal(named)
	if err != nil {
		return fmt.Errorf("recurgent: arguments: %w", err)
	}
	return Unmarshal(object, v)
}

// fieldName returns the JSON name of a struct field, and whether encoding/json uses the field.
func fieldName(f reflect.StructField) (string, bool) {
	tag := f.Tag.Get("json")
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-" || !f.IsExported():
		return "", false
	case name != "":
		return name, true
	}
	return f.Name, true
}

// hasKey reports whether m has a key that encoding/json would match to name: an exact match, or one that differs in
// case.
func hasKey(m map[string]json.RawMessage, name string) bool {
	if _, ok := m[name]; ok {
		return true
	}
	for k := range m {
		if strings.EqualFold(k, name) {
			return true
		}
	}
	return false
}

// History returns the session's earlier calls of depth 0, oldest first: at most the newest 10,000 or 8 MiB. The slice
// and everything in it are the program's own copy.
func (c *Call) History() []Record { return c.records(historyQuery{}) }

// HistoryAll is History with nested calls included.
func (c *Call) HistoryAll() []Record { return c.records(historyQuery{All: true}) }

// HistoryPage returns the records with a seq greater than after, nested calls included: at most limit records, 1,000 or
// less, and 8 MiB.
func (c *Call) HistoryPage(after, limit int) []Record {
	return c.records(historyQuery{All: true, Page: true, After: after, Limit: limit})
}

// historyQuery has the parameters of the operation history. Its zero value asks for History.
type historyQuery struct {
	All   bool `json:"all,omitempty"`
	Page  bool `json:"page,omitempty"`
	After int  `json:"after,omitempty"`
	Limit int  `json:"limit,omitempty"`
}

// records performs a history query. The result is never nil.
func (c *Call) records(q historyQuery) []Record {
	out := []Record{}
	c.ask("history", q, &out)
	return out
}

// InputHistory returns the history that the client passed with this call, one object per turn, or nil if it passed
// none.
func (c *Call) InputHistory() []map[string]any {
	var in struct {
		Messages []map[string]any `json:"messages"`
	}
	if len(c.inputHistory) == 0 || Unmarshal(c.inputHistory, &in) != nil {
		return nil
	}
	return in.Messages
}

// Tools returns the registered tools, by role, that the owner of the call may see: at most the 1,000 that rank best, or
// 4 MiB.
func (c *Call) Tools() map[string]ToolInfo {
	out := map[string]ToolInfo{}
	c.ask("tools", struct{}{}, &out)
	return out
}

// Tool returns a handle on the tool of that role, registered or not. Nothing happens until it is called.
func (c *Call) Tool(role string) *Tool { return &Tool{role: role, call: c} }

// Delegate registers the role with the contract, or tightens the contract of a registered one, and returns its tool.
// Calls of the tool are held to the contract. If the contract is invalid, the tool's calls report it.
func (c *Call) Delegate(role string, k Contract) *Tool {
	params := struct {
		Role     string   `json:"role"`
		Contract Contract `json:"contract"`
	}{role, k}
	t := &Tool{role: role, call: c}
	if err := c.host.Ask("delegate", params, nil); err != nil {
		t.refused = err
	}
	return t
}

// Fetch gets the URL. The daemon performs the request, under its policy. Any status is a Response; an error means that
// there was no answer.
func (c *Call) Fetch(url string) (*Response, error) { return c.FetchWith(Request{URL: url}) }

// FetchWith is Fetch with a method, headers and a body.
func (c *Call) FetchWith(r Request) (*Response, error) {
	out := &Response{}
	if err := c.host.Ask("fetch", r, out); err != nil {
		return nil, err
	}
	return out, nil
}

// maxLogged is the number of lines that Log sends per call.
const maxLogged = 100

// Log adds a line to the notes in the call's log entry. They are for people who look at the call later; callers do not
// see them. A call has at most 100 lines of 1 KiB each; anything beyond is dropped.
func (c *Call) Log(format string, args ...any) {
	if c.logged++; c.logged <= maxLogged {
		c.ask("log", map[string]string{"text": fmt.Sprintf(format, args...)}, nil)
	}
}

// Content returns the stored result that ref names, or nil if it does not exist or was evicted.
func (c *Call) Content(ref string) any {
	var out any
	c.ask("content", map[string]string{"ref": ref}, &out)
	return out
}

// Predict asks the daemon's model for the outputs of a signature and returns them by field name. It is for judgement of
// free text; a program computes itself whatever it can. A call may ask a few times (the operator's predict_budget). An
// error means that there is no answer: resource_exhausted if that budget or the size limit of the inputs is used up,
// provider or unfitting_reply if the model failed, invalid_signature if the signature or the inputs are invalid.
func (c *Call) Predict(sig Signature, inputs map[string]any) (map[string]any, error) {
	if inputs == nil {
		inputs = map[string]any{}
	}
	params := struct {
		Signature Signature      `json:"signature"`
		Inputs    map[string]any `json:"inputs"`
	}{sig, inputs}
	var out map[string]any
	if err := c.host.Ask("predict", params, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// Ask is Predict with one input and one output, a string.
func (c *Call) Ask(instructions string, input any) (string, error) {
	sig := Signature{Instructions: instructions, Inputs: []Field{{Name: "input"}}, Outputs: []Field{{Name: "answer"}}}
	out, err := c.Predict(sig, map[string]any{"input": input})
	if err != nil {
		return "", err
	}
	answer, _ := out["answer"].(string) // the daemon has checked that it is a string
	return answer, nil
}

// ask is for requests that can fail only because the call is over. The panic is harmless then: the runner is about to
// be stopped.
func (c *Call) ask(op string, params, result any) {
	if err := c.host.Ask(op, params, result); err != nil {
		panic(err)
	}
}

// A Tool is a handle on a role that a program can call.
type Tool struct {
	role string
	call *Call
	// refused is the error of Delegate. Every call returns it.
	refused error
}

// Call calls a method of the tool with positional arguments and waits for its outcome.
func (t *Tool) Call(method string, args ...any) Outcome { return t.CallWith(method, args, nil) }

// CallWith is Call with keyword arguments too.
func (t *Tool) CallWith(method string, args []any, kwargs map[string]any) Outcome {
	if t.refused != nil {
		return errorOutcome(t.refused)
	}
	if args == nil {
		args = []any{}
	}
	if kwargs == nil {
		kwargs = map[string]any{}
	}
	params := struct {
		Role   string         `json:"role"`
		Method string         `json:"method"`
		Args   []any          `json:"args"`
		Kwargs map[string]any `json:"kwargs"`
	}{t.role, method, args, kwargs}
	var out Outcome
	if err := t.call.host.Ask("call", params, &out); err != nil {
		return errorOutcome(err)
	}
	return out
}

// Role returns the tool's role.
func (t *Tool) Role() string { return t.role }

// errorOutcome returns the outcome of a nested call that did not take place.
func errorOutcome(err error) Outcome {
	f := AsFailure(err)
	return Outcome{Status: "error", ErrorType: f.Type, ErrorMessage: f.Message}
}

// Outcome is the result of a nested call: Status is "ok", and Value is set, or Status is "error".
type Outcome struct {
	Status       string         `json:"status"`
	Value        any            `json:"value"`
	ErrorType    string         `json:"error_type"`
	ErrorMessage string         `json:"error_message"`
	Retriable    bool           `json:"retriable"`
	Metadata     map[string]any `json:"metadata"`
}

// OK reports whether the call ended with a value.
func (o Outcome) OK() bool { return o.Status == "ok" }

// Contract is what a delegated tool promises.
type Contract struct {
	Purpose       string           `json:"purpose,omitempty"`
	Deliverable   map[string]any   `json:"deliverable,omitempty"`    // machine-checked
	Acceptance    []map[string]any `json:"acceptance,omitempty"`     // prose for the model
	FailurePolicy map[string]any   `json:"failure_policy,omitempty"` // prose for the model
}

// Signature declares the inputs of a model call and the outputs that it returns.
type Signature struct {
	Instructions string  `json:"instructions,omitempty"`
	Inputs       []Field `json:"inputs"`
	Outputs      []Field `json:"outputs"`
}

// Field is one input or output of a signature. Type is string, number, integer, boolean, object, array or any. If Type
// is empty, the type of Schema applies, or, without one, any for an input and string for an output.
type Field struct {
	Name        string         `json:"name"`
	Type        string         `json:"type,omitempty"`
	Description string         `json:"description,omitempty"`
	Schema      map[string]any `json:"schema,omitempty"` // a JSON Schema that the value must match
}

// ToolInfo is the registry's entry for a tool.
type ToolInfo struct {
	Role        string         `json:"role"`
	Purpose     string         `json:"purpose"`
	Deliverable map[string]any `json:"deliverable"`
	Methods     []string       `json:"methods"`
	UsageCount  int            `json:"usage_count"`
}

// Record is one earlier call of the session. Only the first nine fields are always set.
type Record struct {
	CallID         string         `json:"call_id"`
	Timestamp      string         `json:"timestamp"` // RFC 3339, UTC
	Speaker        string         `json:"speaker"`   // "user", "tool" or "agent"
	Role           string         `json:"role"`
	MethodName     string         `json:"method_name"`
	Args           []any          `json:"args"`
	Kwargs         map[string]any `json:"kwargs"`
	OutcomeSummary map[string]any `json:"outcome_summary"` // status, ok, error_type, retriable, value_class ...
	Seq            int            `json:"seq"`

	TraceID       string  `json:"trace_id"`
	ParentCallID  string  `json:"parent_call_id"`
	Depth         int     `json:"depth"`
	DurationMs    float64 `json:"duration_ms"`
	ErrorType     string  `json:"error_type"`
	ErrorMessage  string  `json:"error_message"`
	ProgramSource string  `json:"program_source"`
	ArtifactHit   bool    `json:"artifact_hit"`
}

// Request is a request that the daemon performs for the program. Method is GET if empty. Retry is how often the request
// is repeated, at most 10 times, while the answer is 429 or 503: after the delay that the answer names, and within the
// call's deadline. Cache accepts an answer from the daemon's cache, for as long as the host allows.
type Request struct {
	URL    string            `json:"url"`
	Method string            `json:"method,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	Retry  int               `json:"retry,omitempty"`
	Cache  bool              `json:"cache,omitempty"`

	BodyBytes []byte `json:"body_bytes,omitempty"` // a binary body; takes precedence over Body
}

// Response is the answer to a fetch.
type Response struct {
	Status    int               `json:"status"`
	Header    map[string]string `json:"header"` // canonical names, values joined by ", "
	Body      string            `json:"body"`
	FetchedAt string            `json:"fetched_at"` // RFC 3339, UTC

	// Raw is the body if it is not UTF-8, which Body cannot hold; otherwise nil. Bytes returns the body in either case.
	Raw []byte `json:"raw,omitempty"`
}

// Bytes returns the body as it was sent, with the content encoding removed: a picture, an archive or a spreadsheet is
// complete. Text is in UTF-8, as in Body.
func (r *Response) Bytes() []byte {
	if r.Raw != nil {
		return r.Raw
	}
	return []byte(r.Body)
}

// Fail returns an error that ends the call in an error outcome of that type. Types are lower-case words such as
// invalid_input, parse_failed, low_utility or wrong_tool_boundary; a program may define its own.
func Fail(errorType, message string) error { return &Failure{Type: errorType, Message: message} }

// FailRetriable is Fail for a transient error: the outcome is marked retriable, and the same call may succeed later.
func FailRetriable(errorType, message string) error {
	return &Failure{Type: errorType, Message: message, Retriable: true}
}
