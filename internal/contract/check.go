package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Check says how a value falls short of the schema, or nil when it does not.
func (s *Schema) Check(value json.RawMessage) *Violation {
	if s.Empty() {
		return nil
	}
	v, err := Decode(value)
	if err != nil {
		return &Violation{Mismatch: MismatchSchema, Message: "the value is not JSON", Metadata: map[string]any{"mismatch": MismatchSchema,
			"expected_shape": "JSON", "actual_shape": "not JSON", "expected_keys": []string{}, "actual_keys": []string{}, "constraint_path": "deliverable"}}
	}
	return s.CheckDecoded(v)
}

// CheckDecoded is Check for a value that Decode read. It does not change the value.
func (s *Schema) CheckDecoded(v any) *Violation {
	if s.Empty() {
		return nil
	}
	l := measure(v)
	if limit := s.checkable(); l.values > limit {
		return s.tooLarge(v, fmt.Sprintf("at most %d values", limit), fmt.Sprintf("%d values", l.values))
	}
	if !s.affordable(v, l) {
		return s.tooLarge(v, fmt.Sprintf("a check of at most %d steps", MaxSteps), fmt.Sprintf("%d values, %d bytes of text", l.values, l.text))
	}
	if l.odd {
		v = tame(v)
	}
	err := s.validate(v)
	if err == nil {
		return nil
	}
	failed, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return s.violation(leaf{text: err.Error()}, v)
	}
	return s.violation(firstLeaf(failed), v)
}

// CheckCall is Check with one thing more, which only the call knows: an empty object or array as the answer to a
// required input that was null is nil_required_input. The first positional argument is the required one, unless
// keyword arguments were given.
func (s *Schema) CheckCall(value json.RawMessage, args []json.RawMessage, kwargs json.RawMessage) *Violation {
	if s.Empty() {
		return nil
	}
	if v := nilRequiredInput(value, args, kwargs); v != nil {
		return v
	}
	return s.Check(value)
}

func (s *Schema) checkable() int {
	if s.unbounded {
		return MaxUnbounded
	}
	return MaxChecked
}

// validate keeps a panic of the library over a hostile value from ending the daemon.
func (s *Schema) validate(v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the value cannot be checked: %v", r)
		}
	}()
	return s.compiled.Validate(v)
}

func oddNumber(n json.Number) bool {
	if len(n) > maxDigits {
		return true
	}
	i := strings.IndexAny(string(n), "eE")
	if i < 0 {
		return false
	}
	exp, err := strconv.Atoi(string(n[i+1:]))
	return err != nil || exp > maxExponent || exp < -maxExponent
}

// tame copies v with its odd numbers rounded: exact arithmetic on 1e999999999 would take the machine down.
func tame(v any) any {
	switch v := v.(type) {
	case json.Number:
		if oddNumber(v) {
			return tameNumber(v)
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = tame(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = tame(e)
		}
		return out
	}
	return v
}

func tameNumber(n json.Number) json.Number {
	f, err := strconv.ParseFloat(string(n), 64)
	switch {
	case err != nil && strings.HasPrefix(string(n), "-"):
		return "-1e400"
	case err != nil:
		return "1e400"
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

// The extension's keywords stand for items and additionalProperties: see translator.cutShort.
const (
	extensionName = "firstFailure"
	extPrefix     = "x-"
	extItems      = extPrefix + "items"
	extAdditional = extPrefix + "additionalProperties"
)

// firstFailure compiles the extension's keywords.
type firstFailure struct{}

type firstFailureSchema struct {
	items      *jsonschema.Schema
	skip       int // items that prefixItems looks at
	additional *jsonschema.Schema
	known      map[string]any // properties
}

func (firstFailure) Compile(ctx jsonschema.CompilerContext, m map[string]any) (jsonschema.ExtSchema, error) {
	s := &firstFailureSchema{}
	var err error
	if _, ok := m[extItems]; ok {
		prefix, _ := m["prefixItems"].([]any)
		s.skip = len(prefix)
		if s.items, err = ctx.Compile(extItems, false); err != nil {
			return nil, err
		}
	}
	if _, ok := m[extAdditional]; ok {
		s.known, _ = m["properties"].(map[string]any)
		if s.additional, err = ctx.Compile(extAdditional, false); err != nil {
			return nil, err
		}
	}
	if s.items == nil && s.additional == nil {
		return nil, nil
	}
	return s, nil
}

func (s *firstFailureSchema) Validate(ctx jsonschema.ValidationContext, v any) error {
	switch v := v.(type) {
	case []any:
		if s.items == nil {
			return nil
		}
		for i := s.skip; i < len(v); i++ {
			if err := ctx.Validate(s.items, extItems, v[i], strconv.Itoa(i)); err != nil {
				return err
			}
		}
	case map[string]any:
		if s.additional == nil {
			return nil
		}
		for _, k := range s.others(v) {
			if err := ctx.Validate(s.additional, extAdditional, v[k], pathToken(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *firstFailureSchema) others(v map[string]any) []string {
	keys := make([]string, 0, len(v))
	for k := range v {
		if _, ok := s.known[k]; !ok {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	return keys
}

// pathToken escapes a key as the library does. To the library an empty path means the value itself, so the empty key
// gets a name that unescapes to "~".
func pathToken(key string) string {
	if key == "" {
		return "~0"
	}
	return url.PathEscape(escapeToken(key))
}

func nilRequiredInput(value json.RawMessage, args []json.RawMessage, kwargs json.RawMessage) *Violation {
	if len(args) == 0 || string(bytes.TrimSpace(args[0])) != "null" || !emptyJSON(kwargs) || len(value) > 64 || len(value) == 0 {
		return nil
	}
	if first := bytes.TrimSpace(value)[0]; !emptyJSON(value) || first != '{' && first != '[' {
		return nil
	}
	return &Violation{Mismatch: MismatchNilInput, Message: "the first argument is null, and the value is empty: a required input is missing",
		Metadata: map[string]any{"mismatch": MismatchNilInput, "expected_shape": "non_nil_input", "actual_shape": "nil",
			"expected_keys": []string{}, "actual_keys": []string{}, "constraint_path": "args.0"}}
}

// emptyJSON reports whether raw is nothing, null, {} or [].
func emptyJSON(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	last := len(raw) - 1
	return (raw[0] == '{' && raw[last] == '}' || raw[0] == '[' && raw[last] == ']') && len(bytes.TrimSpace(raw[1:last])) == 0
}
