package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"
)

// Bounds of the examples of one method.
const (
	MaxExamples      = 64
	MaxExamplesBytes = 256 << 10
	MaxExampleID     = 64 // bytes
)

// States of an example.
const (
	ExampleActive   = "active"   // programs must satisfy it
	ExampleProposed = "proposed" // proposed by a caller who may not decide; not binding yet
)

// Example is an expected answer that a person fixed. It takes precedence over any program's answer.
type Example struct {
	ID      string            `json:"id"` // ex_...
	Args    []json.RawMessage `json:"args"`
	Kwargs  json.RawMessage   `json:"kwargs"`
	Context json.RawMessage   `json:"context,omitempty"` // of the session, an object
	Expect  Expectation       `json:"expect"`
	// Tolerance is the largest absolute difference of numbers; 0 allows none; nil means 1e-9 relative.
	Tolerance *float64  `json:"tolerance,omitempty"`
	Note      string    `json:"note,omitempty"`
	State     string    `json:"state"`
	By        string    `json:"by,omitempty"` // who fixed it
	CreatedAt time.Time `json:"created_at,omitzero"`

	// CallID, SessionID and Effects come from a judged call. Effects are its recorded external inputs, which are
	// replayed.
	CallID    string          `json:"call_id,omitempty"`
	SessionID string          `json:"session_id,omitempty"`
	Effects   json.RawMessage `json:"effects,omitempty"`
	TakenAt   time.Time       `json:"taken_at,omitzero"` // when the effects were recorded
}

// Recorded returns the time at which the example's effects were recorded.
func (x *Example) Recorded() time.Time {
	if x.TakenAt.IsZero() {
		return x.CreatedAt // a file from before TakenAt
	}
	return x.TakenAt
}

// Expectation describes the demanded answer. Exactly one of its members is set.
type Expectation struct {
	Value     json.RawMessage `json:"value,omitempty"` // null counts as given
	ErrorType string          `json:"error_type,omitempty"`
	Schema    json.RawMessage `json:"schema,omitempty"` // JSON Schema 2020-12
}

// Validate returns an error unless exactly one member is set and valid.
func (e Expectation) Validate() error {
	given := 0
	for _, set := range []bool{e.Value != nil, e.ErrorType != "", e.Schema != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		return errors.New("must have exactly one of value, error_type and schema")
	}
	if e.ErrorType != "" && !IsErrorType(e.ErrorType) {
		return errors.New("error_type must be a lower-case word, such as invalid_input: programs have no errors of other types")
	}
	if e.Schema != nil && Kind(e.Schema) != "object" {
		return errors.New("schema must be an object")
	}
	return nil
}

// same reports whether two expectations are equal as JSON values.
func (e *Expectation) same(o *Expectation) bool {
	return e.ErrorType == o.ErrorType && sameRaw(e.Value, o.Value) && sameRaw(e.Schema, o.Schema)
}

func sameRaw(a, b json.RawMessage) bool { return (a == nil) == (b == nil) && equalJSON(a, b) }

// String describes the expectation for people and models.
func (e Expectation) String() string {
	switch {
	case e.ErrorType != "":
		return "an error of the type " + e.ErrorType
	case e.Schema != nil:
		return "a value that keeps the schema " + string(e.Schema)
	}
	return string(e.Value)
}

// SameInput reports whether the example has these arguments, compared as JSON values.
func (x *Example) SameInput(args []json.RawMessage, kwargs json.RawMessage) bool {
	return SameInput(x.Args, x.Kwargs, args, kwargs)
}

// SameInput compares arguments by their JSON values.
func SameInput(aArgs []json.RawMessage, aKwargs json.RawMessage, bArgs []json.RawMessage,
	bKwargs json.RawMessage) bool {
	return slices.EqualFunc(aArgs, bArgs, equalJSON) && equalJSON(orEmpty(aKwargs), orEmpty(bKwargs))
}

func orEmpty(kwargs json.RawMessage) json.RawMessage {
	if len(kwargs) == 0 {
		return json.RawMessage("{}")
	}
	return kwargs
}

// equalJSON compares JSON values. unlike rejects obviously different ones without decoding them.
func equalJSON(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || !unlike(a, b, unlikeDepth) && bytes.Equal(canonical(a, sameDigits),
		canonical(b, sameDigits))
}

// sameDigits returns a number in the form that programs receive, so that 1, 1.0 and 1e0 give the same text. Integers
// keep all digits.
func sameDigits(n json.Number) any {
	if !strings.ContainsAny(n.String(), ".eE") {
		return n
	}
	f, err := n.Float64()
	const exact = 1 << 53
	switch {
	case err != nil:
		return n
	// Up to 2^53 every integer is exact in a float64.
	case f == math.Trunc(f) && math.Abs(f) <= exact:
		return int64(f)
	}
	return f
}

// Canonical writes JSON with sorted keys and without insignificant white space. Numbers keep their digits. Invalid JSON
// is returned unchanged.
func Canonical(raw json.RawMessage) []byte { return canonical(raw, nil) }

// canonical encodes raw again with sorted keys, and with its numbers replaced by number unless that is nil. Invalid
// JSON is returned unchanged.
func canonical(raw json.RawMessage, number func(json.Number) any) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	if number != nil {
		v = withNumbers(v, number)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// withNumbers replaces the numbers in a decoded value, in place.
func withNumbers(v any, number func(json.Number) any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i := range v {
			v[i] = withNumbers(v[i], number)
		}
	case map[string]any:
		for k := range v {
			v[k] = withNumbers(v[k], number)
		}
	}
	return v
}

// Size returns the bytes that the example counts towards MaxExamplesBytes.
func (x *Example) Size() int {
	n := len(x.Kwargs) + len(x.Context) + len(x.Expect.Value) + len(x.Expect.Schema) + len(x.Note) + len(x.Effects)
	for _, a := range x.Args {
		n += len(a)
	}
	return n
}

// CheckExamples returns an *InputError if the list cannot be kept: it is too long or too large, an expectation is
// invalid, or two examples have the same input (code example_conflict), given by position or by name. takes may be nil.
// Each state has its own bounds, and a proposal may have the input of an active example.
func CheckExamples(list []Example, takes *Interface) error {
	count, size := map[string]int{}, map[string]int{}
	for i := range list {
		x, at := &list[i], fmt.Sprintf("/examples/%d", i)
		if count[x.State]++; count[x.State] > MaxExamples {
			return &InputError{Code: "too_large", Pointer: "/examples",
				Detail: fmt.Sprintf("%d examples, a method has at most %d", len(list), MaxExamples)}
		}
		if x.ID != "" && (CheckName("id", x.ID) != nil || len(x.ID) > MaxExampleID) {
			return &InputError{Code: "invalid_example", Pointer: at + "/id",
				Detail: fmt.Sprintf("must have 1 to %d bytes, no slashes, no control or invisible characters",
					MaxExampleID), Hint: "leave it out, and it is given one"}
		}
		if err := x.Expect.Validate(); err != nil {
			return &InputError{Code: "invalid_example", Pointer: at + "/expect", Detail: err.Error(),
				Hint: `{"expect": {"value": 700}}`}
		}
		if x.Context != nil && Kind(x.Context) != "object" {
			return &InputError{Code: "invalid_example", Pointer: at + "/context", Detail: "must be an object"}
		}
		if x.Tolerance != nil && *x.Tolerance < 0 {
			return &InputError{Code: "invalid_example", Pointer: at + "/tolerance", Detail: "must not be negative"}
		}
		if size[x.State] += x.Size(); size[x.State] > MaxExamplesBytes {
			return &InputError{Code: "too_large", Pointer: at,
				Detail: fmt.Sprintf("the examples of a method take at most %d bytes", MaxExamplesBytes)}
		}
		for j := range list[:i] {
			if x.ID != "" && list[j].ID == x.ID {
				return &InputError{Code: "example_conflict", Pointer: at + "/id",
					Detail: fmt.Sprintf("is the id of /examples/%d, too", j), Hint: "leave it out, and it is given one"}
			}
			if list[j].State == x.State && takes.sameQuestion(&list[j], x) {
				return &InputError{Code: "example_conflict", Pointer: at,
					Detail: fmt.Sprintf("has the same input as /examples/%d", j), Hint: "keep one of them"}
			}
		}
	}
	return nil
}

// sameQuestion reports whether two examples have equal input and context.
func (f *Interface) sameQuestion(a, b *Example) bool {
	return f.SameInput(a.Args, a.Kwargs, b.Args, b.Kwargs) && equalJSON(orEmpty(a.Context), orEmpty(b.Context))
}

// Asking returns the active example with the input and context of x, or nil.
func (a *Artifact) Asking(x *Example) *Example {
	if a == nil {
		return nil
	}
	for i := range a.Examples {
		if y := &a.Examples[i]; y.State == ExampleActive && a.Takes().sameQuestion(y, x) {
			return y
		}
	}
	return nil
}

// ExamplesRevision returns a positive number that differs for lists that look different to people, or 0 for an empty
// list.
func ExamplesRevision(list []Example) int64 {
	if len(list) == 0 {
		return 0
	}
	sum := fnv.New64a()
	for _, x := range list {
		x.Effects, x.TakenAt = nil, time.Time{} // replayed, but not shown
		_, _ = sum.Write(Encoded(x))            // cannot fail
	}
	return max(1, int64(sum.Sum64()>>1))
}

// ActiveExamples returns the examples that programs must satisfy. a may be nil.
func (a *Artifact) ActiveExamples() []Example {
	if a == nil {
		return nil
	}
	var out []Example
	for i := range a.Examples {
		if a.Examples[i].State == ExampleActive {
			out = append(out, a.Examples[i])
		}
	}
	return out
}

// Example returns the example with that id, or nil.
func (a *Artifact) Example(id string) *Example {
	for i := range a.Examples {
		if a.Examples[i].ID == id {
			return &a.Examples[i]
		}
	}
	return nil
}

// Proposes reports whether x matches a stored proposal in id, question and expectation.
func (a *Artifact) Proposes(x *Example) bool {
	if a == nil || x.ID == "" {
		return false
	}
	old := a.Example(x.ID)
	return old != nil && old.State == ExampleProposed && a.Takes().sameQuestion(old, x) && old.Expect.same(&x.Expect)
}

// putExample adds the example. It replaces an earlier one for the same input, except that a proposal does not replace
// an active example, and that an example of a call does not replace one that a person gave and that expects the same:
// the former goes with its session and its verdict, the latter stays.
func (a *Artifact) putExample(x Example) {
	given := a.Asking(&x)
	kept := given != nil && given.ID != x.ID && given.CallID == "" && x.CallID != "" && x.State == ExampleActive &&
		given.Expect.same(&x.Expect)
	if kept {
		x = *given
	}
	a.Examples = slices.DeleteFunc(slices.Clone(a.Examples), func(old Example) bool {
		return old.ID == x.ID || a.Takes().sameQuestion(&old, &x) &&
			(x.State == ExampleActive || old.State == ExampleProposed)
	})
	a.Examples = append(a.Examples, x)
}
