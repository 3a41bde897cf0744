package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Limits of a history input.
type Limits struct {
	Elements int // messages
	Bytes    int // size of the whole input
}

// DefaultLimits returns the limits that apply without other settings.
func DefaultLimits() Limits { return Limits{Elements: 1000, Bytes: 1 << 20} }

// CodeTooLarge is the error code for a history input over the limits.
const CodeTooLarge = "too_large"

// An Error describes why a history input is rejected. Code is invalid_history_value, invalid_history_element or
// CodeTooLarge.
type Error struct {
	Code    string
	Pointer string // JSON pointer into the history input
	Detail  string
	Meta    map[string]any // keys by code: field, expected, got; index, reason; limit, got, unit
}

func (e *Error) Error() string { return "history " + e.Pointer + ": " + e.Detail }

// Turn is an element of a history input: values by field name. Null fields are left out.
type Turn map[string]json.RawMessage

// Parse reads a history input, {"messages": [...]}. Absent, null and empty inputs give no turns. With a signature, each
// element must hold at least one of its inputs, not counting the history field, and one of its outputs. Without one, it
// must be an object. field names the input in errors; "" means history. The first fault is returned as an *Error.
func Parse(raw json.RawMessage, field string, sig *contract.Signature, lim Limits) ([]Turn, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if len(raw) > lim.Bytes {
		return nil, &Error{CodeTooLarge, "", fmt.Sprintf("has %d bytes; at most %d are read", len(raw), lim.Bytes),
			map[string]any{"limit": lim.Bytes, "got": len(raw), "unit": "bytes"}}
	}
	if field == "" {
		field = "history"
	}
	refuse := func(got string) error {
		return &Error{agent.ErrInvalidHistoryValue, "", `must be an object with a messages list: {"messages": [...]}`,
			map[string]any{"field": field, "expected": "{messages: [...]}", "got": got}}
	}
	var in map[string]json.RawMessage
	if agent.Kind(raw) != "object" || json.Unmarshal(raw, &in) != nil {
		return nil, refuse(agent.Kind(raw))
	}
	messages, ok := in["messages"]
	if !ok {
		return nil, refuse("object without messages")
	}
	var elements []json.RawMessage
	if agent.Kind(messages) != "array" || json.Unmarshal(messages, &elements) != nil {
		return nil, refuse("object with messages: " + agent.Kind(messages))
	}
	if len(elements) > lim.Elements {
		return nil, &Error{CodeTooLarge, "/messages", fmt.Sprintf("has %d elements; at most %d are read", len(elements),
			lim.Elements), map[string]any{"limit": lim.Elements, "got": len(elements), "unit": "elements"}}
	}
	turns := make([]Turn, 0, len(elements))
	for i, e := range elements {
		turn, reason := parseTurn(e, sig)
		if reason != "" {
			return nil, &Error{agent.ErrInvalidHistoryElement, fmt.Sprintf("/messages/%d", i), elementDetail(reason),
				map[string]any{"index": i, "reason": reason}}
		}
		turns = append(turns, turn)
	}
	return turns, nil
}

// Reasons of an invalid element.
const (
	reasonNotObject = "not_an_object"
	reasonNoInput   = "missing_input_fields"
	reasonNoOutput  = "missing_output_fields"
)

func elementDetail(reason string) string {
	switch reason {
	case reasonNoInput:
		return "names none of the signature's inputs"
	case reasonNoOutput:
		return "names none of the signature's outputs"
	}
	return "must be an object of inputs and outputs by name"
}

// parseTurn decodes an element. It returns a reason if the element is invalid, otherwise "".
func parseTurn(raw json.RawMessage, sig *contract.Signature) (Turn, string) {
	var all map[string]json.RawMessage
	if agent.Kind(raw) != "object" || json.Unmarshal(raw, &all) != nil {
		return nil, reasonNotObject
	}
	turn := Turn(all)
	turn.dropNulls()
	if sig == nil {
		return turn, ""
	}
	if !turn.hasAny(inputs(sig)) {
		return nil, reasonNoInput
	}
	if !turn.hasAny(sig.Outputs) {
		return nil, reasonNoOutput
	}
	return turn, ""
}

func (t Turn) hasAny(fields []contract.Field) bool {
	for _, f := range fields {
		if _, ok := t[f.Name]; ok {
			return true
		}
	}
	return false
}

// inputs returns the signature's inputs without the history field.
func inputs(sig *contract.Signature) []contract.Field {
	out := make([]contract.Field, 0, len(sig.Inputs))
	for _, f := range sig.Inputs {
		if f.Type != contract.TypeHistory {
			out = append(out, f)
		}
	}
	return out
}

// Messages renders each turn as a user message with its inputs and an assistant message with its outputs, so n turns
// give 2n messages. Fields outside the signature are ignored.
func Messages(turns []Turn, sig *contract.Signature) []provider.Message {
	out := make([]provider.Message, 0, 2*len(turns))
	for _, t := range turns {
		out = append(out, provider.Message{Role: "user", Content: Render(t, inputs(sig))},
			provider.Message{Role: "assistant", Content: Render(t, sig.Outputs)})
	}
	return out
}

// Render returns the turn's fields as "Field: value" lines, in the order of fields. Missing fields are left out.
func Render(t Turn, fields []contract.Field) string {
	var lines []string
	for _, f := range fields {
		if v, ok := t[f.Name]; ok {
			lines = append(lines, Label(f.Name)+": "+Value(v))
		}
	}
	return strings.Join(lines, "\n")
}

// Label renders a field's name with the first letter in title case and the rest in lower case.
func Label(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToTitle(first)) + strings.ToLower(name[size:])
}

// Value renders a value: a string as it is, anything else as compact JSON with sorted keys. Numbers keep their digits.
func Value(raw json.RawMessage) string {
	var s string
	if agent.Kind(raw) == "string" && json.Unmarshal(raw, &s) == nil {
		return s
	}
	v, err := contract.Decode(raw)
	if err != nil {
		return strings.TrimSpace(string(raw))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return strings.TrimSpace(string(raw))
	}
	return strings.TrimRight(b.String(), "\n")
}

// Newest returns a history input with the newest elements that fit the limits, oldest first. elements must be objects,
// oldest first.
func Newest(elements []json.RawMessage, lim Limits) json.RawMessage {
	const frame = len(`{"messages":[]}`)
	size, from := frame, len(elements)
	for from > 0 && len(elements)-from < lim.Elements && size+len(elements[from-1])+1 <= lim.Bytes {
		from--
		size += len(elements[from]) + 1
	}
	out := append(make(json.RawMessage, 0, size), `{"messages":[`...)
	for i, e := range elements[from:] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, "]}"...)
}

// Element returns an element of a history input with a turn's inputs and outputs. It holds only fields of the
// signature, in their order, without the history field.
func Element(sig *contract.Signature, in, out map[string]json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	add := func(fields []contract.Field, from map[string]json.RawMessage) {
		for _, f := range fields {
			v, ok := from[f.Name]
			if !ok || agent.Kind(v) == "null" {
				continue
			}
			name, _ := json.Marshal(f.Name) // a string always encodes
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(append(append(b, name...), ':'), v...)
		}
	}
	add(inputs(sig), in)
	add(sig.Outputs, out)
	return append(b, '}')
}

// FromCall returns an element for an ok call of a method with a signature. Arguments become inputs, by position or by
// name. If the value is an object that names an output, its members become the outputs; any other value becomes the
// first output. ok is false if there is no input or no output.
func FromCall(sig *contract.Signature, args []json.RawMessage, kwargs json.RawMessage,
	value json.RawMessage) (element json.RawMessage, ok bool) {
	in := Turn{}
	var named map[string]json.RawMessage
	_ = json.Unmarshal(kwargs, &named) // on an error there are no keyword arguments
	position := 0
	for _, f := range inputs(sig) {
		if v, given := named[f.Name]; given {
			in[f.Name] = v
		} else if position < len(args) {
			in[f.Name] = args[position]
			position++
		}
	}
	out := Turn{}
	if agent.Kind(value) != "object" || json.Unmarshal(value, &out) != nil || !out.hasAny(sig.Outputs) {
		out = Turn{}
		if len(value) > 0 && agent.Kind(value) != "null" {
			out[sig.Outputs[0].Name] = value
		}
	}
	in.dropNulls()
	out.dropNulls()
	if !in.hasAny(inputs(sig)) || !out.hasAny(sig.Outputs) {
		return nil, false
	}
	return Element(sig, in, out), true
}

// dropNulls removes null fields, which count as absent.
func (t Turn) dropNulls() {
	for k, v := range t {
		if agent.Kind(v) == "null" {
			delete(t, k)
		}
	}
}
