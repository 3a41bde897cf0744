package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a signature.
const (
	maxFields      = 64       // of inputs, and of outputs
	maxFieldSchema = 32 << 10 // bytes of all field schemas together, which each prediction sends to a model
)

// Types of a signature's fields.
const (
	TypeString  = "string"
	TypeNumber  = "number"
	TypeInteger = "integer"
	TypeBoolean = "boolean"
	TypeObject  = "object"
	TypeArray   = "array"
	TypeAny     = "any"
	TypeHistory = "history" // for one input at most
)

// A Field is one input or output of a signature.
type Field struct {
	Name string `json:"name"`
	// never empty after ParseSignature: by default any for inputs, string for outputs
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	// further constraints, as a deliverable; mostly JSON Schema
	Schema json.RawMessage `json:"schema,omitempty"`
}

// A Signature declares the inputs and outputs of a prediction.
type Signature struct {
	Instructions string  `json:"instructions,omitempty"`
	Inputs       []Field `json:"inputs"`
	Outputs      []Field `json:"outputs"`
}

// HistoryField returns the name of the input of type history, or "".
func (s Signature) HistoryField() string {
	for _, f := range s.Inputs {
		if f.Type == TypeHistory {
			return f.Name
		}
	}
	return ""
}

// A SignatureError names an invalid part of a signature. Pointer is a JSON pointer into it.
type SignatureError struct {
	Pointer string
	Reason  string
}

func (e *SignatureError) Error() string {
	return strings.TrimSpace("signature " + e.Pointer + " " + e.Reason)
}

// ParseSignature parses a signature. It requires at least one output, and one input apart from the history. Names are
// unique regardless of letter case. Everything else is a *SignatureError, unknown members included.
func ParseSignature(raw json.RawMessage) (Signature, error) {
	var s Signature
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Signature{}, &SignatureError{"",
			"must be {instructions?, inputs: [{name, type?, description?, schema?}], outputs: [...]}: " + err.Error()}
	}
	if _, err := d.Token(); err != io.EOF {
		return Signature{}, &SignatureError{"", "has more than one JSON value"}
	}
	seen := map[string]bool{}
	if err := checkFields(s.Inputs, "/inputs", TypeAny, true, seen); err != nil {
		return Signature{}, err
	}
	if err := checkFields(s.Outputs, "/outputs", TypeString, false, seen); err != nil {
		return Signature{}, err
	}
	histories := 0
	for _, f := range s.Inputs {
		if f.Type == TypeHistory {
			histories++
		}
	}
	switch {
	case histories > 1:
		return Signature{}, &SignatureError{"/inputs", "may have one field of type history"}
	case len(s.Inputs) == histories:
		return Signature{}, &SignatureError{"/inputs", "must name at least one field beside the history"}
	case len(s.Outputs) == 0:
		return Signature{}, &SignatureError{"/outputs", "must name at least one field"}
	case schemaBytes(s) > maxFieldSchema:
		return Signature{}, &SignatureError{"", fmt.Sprintf("has schemas of %d bytes; at most %d are read",
			schemaBytes(s), maxFieldSchema)}
	}
	return s, nil
}

// ParseNewSignature is ParseSignature for a signature that a person or client writes. As Compile does, it refuses
// misspelled constraints.
func ParseNewSignature(raw json.RawMessage) (Signature, error) {
	s, err := ParseSignature(raw)
	if err != nil {
		return s, err
	}
	for place, fields := range map[string][]Field{"/inputs/": s.Inputs, "/outputs/": s.Outputs} {
		for i, f := range fields {
			var bad *InvalidError
			if _, err := Compile(f.Schema); errors.As(err, &bad) {
				return Signature{}, &SignatureError{place + strconv.Itoa(i) + "/schema" + bad.Pointer, bad.Reason}
			}
		}
	}
	return s, nil
}

// schemaBytes returns the size of all field schemas.
func schemaBytes(s Signature) (n int) {
	for _, f := range slices.Concat(s.Inputs, s.Outputs) {
		n += len(f.Schema)
	}
	return n
}

// Check returns how a value violates the field's schema, or nil. It compiles the schema each time, which costs little
// in comparison with the request to a model that precedes it.
func (f Field) Check(value json.RawMessage) *Violation {
	if len(f.Schema) == 0 {
		return nil
	}
	s, err := CompileStored(f.Schema)
	if err != nil { // not reached after ParseSignature
		return &Violation{Mismatch: MismatchSchema, Message: err.Error()}
	}
	return s.Check(value)
}

// checkFields validates the fields and sets missing types. seen collects names across calls.
func checkFields(fields []Field, at, fallback string, history bool, seen map[string]bool) error {
	if len(fields) > maxFields {
		return &SignatureError{at, fmt.Sprintf("may name at most %d fields", maxFields)}
	}
	known := []string{TypeString, TypeNumber, TypeInteger, TypeBoolean, TypeObject, TypeArray, TypeAny}
	if history {
		known = append(known, TypeHistory)
	}
	for i := range fields {
		f, here := &fields[i], at+"/"+strconv.Itoa(i)
		if reason := badFieldName(f.Name); reason != "" {
			return &SignatureError{here + "/name", reason}
		}
		if err := checkSchema(f, here); err != nil {
			return err
		}
		if f.Type == "" {
			f.Type = typeOfSchema(f.Schema, known, fallback)
		}
		if !slices.Contains(known, f.Type) {
			return &SignatureError{here + "/type", "must be one of " + strings.Join(known, ", ")}
		}
		key := strings.ToLower(f.Name)
		if seen[key] {
			return &SignatureError{here + "/name", fmt.Sprintf("names %q a second time", f.Name)}
		}
		seen[key] = true
	}
	return nil
}

// checkSchema validates and compacts a field's schema. It removes a null schema.
func checkSchema(f *Field, at string) error {
	if absent(f.Schema) {
		f.Schema = nil
		return nil
	}
	if f.Type == TypeHistory {
		return &SignatureError{at + "/schema", "does not go with the type history"}
	}
	var bad *InvalidError
	if _, err := CompileStored(f.Schema); errors.As(err, &bad) {
		return &SignatureError{at + "/schema" + bad.Pointer, bad.Reason}
	} else if err != nil {
		return &SignatureError{at + "/schema", err.Error()}
	}
	var b bytes.Buffer
	if json.Compact(&b, f.Schema) == nil {
		f.Schema = b.Bytes()
	}
	return nil
}

// typeOfSchema returns the type of a field without one: the type in its schema if that has exactly one, else any. A
// field without a schema gets the fallback.
func typeOfSchema(schema json.RawMessage, known []string, fallback string) string {
	if len(schema) == 0 {
		return fallback
	}
	var s struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return TypeAny
	}
	if t, ok := s.Type.(string); ok && t != TypeHistory && slices.Contains(known, t) {
		return t
	}
	return TypeAny
}

// badFieldName returns what is wrong with a name, or "".
func badFieldName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "must not be blank"
	case strings.TrimSpace(name) != name:
		return "must not begin or end with white space"
	case !utf8.ValidString(name) || utf8.RuneCountInString(name) > 100:
		return "must be valid UTF-8 of at most 100 characters"
	case strings.ContainsFunc(name, func(r rune) bool { return r == ':' || unicode.IsControl(r) }):
		return "must not contain a colon or control characters"
	}
	return ""
}
