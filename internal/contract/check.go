package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Check returns how the value violates the schema, or nil. It is safe for concurrent use.
func (s *Schema) Check(value json.RawMessage) *Violation {
	v, _ := s.CheckUntil(context.Background(), value)
	return v
}

// CheckUntil is Check that stops when ctx ends, if the check takes many steps. Then it returns the cause of ctx's end.
func (s *Schema) CheckUntil(ctx context.Context, value json.RawMessage) (*Violation, error) {
	if s.Empty() {
		return nil, nil
	}
	v, err := Decode(value)
	if err != nil {
		return &Violation{Mismatch: MismatchSchema, Message: "the value is not JSON",
			Metadata: map[string]any{"mismatch": MismatchSchema,
				"expected_shape": "JSON", "actual_shape": "not JSON", "expected_keys": []string{},
				"actual_keys": []string{}, "constraint_path": "deliverable"}}, nil
	}
	return s.checkDecoded(ctx, v)
}

// CheckDecoded is Check for a value that Decode returned. It does not change the value.
func (s *Schema) CheckDecoded(v any) *Violation {
	if s.Empty() {
		return nil
	}
	broken, _ := s.checkDecoded(context.Background(), v)
	return broken
}

// checkDecoded refuses a value that is too expensive to check, before it checks it.
func (s *Schema) checkDecoded(ctx context.Context, v any) (*Violation, error) {
	l := measure(v)
	if limit := s.checkable(); l.values > limit {
		return s.tooLarge(v, fmt.Sprintf("at most %d values", limit), fmt.Sprintf("%d values", l.values)), nil
	}
	if !s.affordable(v, l) {
		return s.tooLarge(v, fmt.Sprintf("a check of at most %d steps", maxSteps),
			fmt.Sprintf("%d values, %d bytes of text", l.values, l.text)), nil
	}
	// the arithmetic of the library is exact, so round numbers with huge exponents first
	if l.odd {
		v = tame(v)
	}
	var err error
	// most checks are short and need no second compilation
	if s.atMost(l) < manySteps || ctx.Done() == nil {
		err = validate(s.compiled, v)
	} else {
		err = s.validateUntil(ctx, v)
	}
	if err == nil {
		return nil, nil
	}
	if errors.Is(err, errEnded) {
		return nil, context.Cause(ctx)
	}
	failed, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return s.violation(leaf{text: err.Error()}, v), nil
	}
	return s.violation(firstLeaf(failed), v), nil
}

// CheckCall is CheckUntil with an additional rule: if a required input is null, an empty object or array is not a valid
// answer, but MismatchNilInput. The first positional argument is the required input, unless there are keyword
// arguments.
func (s *Schema) CheckCall(ctx context.Context, value json.RawMessage, args []json.RawMessage,
	kwargs json.RawMessage) (*Violation, error) {
	if s.Empty() {
		return nil, nil
	}
	if v := nilRequiredInput(value, args, kwargs); v != nil {
		return v, nil
	}
	return s.CheckUntil(ctx, value)
}

// checkable returns how many values a checked value may have.
func (s *Schema) checkable() int {
	if s.unbounded {
		return maxUnbounded
	}
	return maxChecked
}

// validate turns a panic of the library into an error, so that a hostile value cannot crash the daemon.
func validate(compiled *jsonschema.Schema, v any) (err error) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case errEnded:
			err = errEnded
		default:
			err = fmt.Errorf("the value cannot be checked: %v", r)
		}
	}()
	return compiled.Validate(v)
}

// oddNumber reports whether exact arithmetic on n could be too expensive.
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

// tame returns a copy of v with odd numbers rounded. Exact arithmetic on 1e999999999 would exhaust the machine.
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

// tameNumber rounds n to a float64, or to ±1e400 if it does not fit.
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

// pathToken escapes a key for the library. The library takes an empty path for the value itself, so the empty key
// becomes a token that unescapes to "~".
func pathToken(key string) string {
	if key == "" {
		return "~0"
	}
	return url.PathEscape(escapeToken(key))
}

// nilRequiredInput returns the violation that CheckCall adds to CheckUntil, or nil.
func nilRequiredInput(value json.RawMessage, args []json.RawMessage, kwargs json.RawMessage) *Violation {
	if len(args) == 0 || string(bytes.TrimSpace(args[0])) != "null" || !emptyJSON(kwargs) || len(value) > 64 ||
		len(value) == 0 {
		return nil
	}
	if first := bytes.TrimSpace(value)[0]; !emptyJSON(value) || first != '{' && first != '[' {
		return nil
	}
	return &Violation{Mismatch: MismatchNilInput,
		Message: "the first argument is null, and the value is empty: a required input is missing",
		Metadata: map[string]any{"mismatch": MismatchNilInput, "expected_shape": "non_nil_input", "actual_shape": "nil",
			"expected_keys": []string{}, "actual_keys": []string{}, "constraint_path": "args.0"}}
}

// emptyJSON reports whether raw is empty, null, {} or [].
func emptyJSON(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	last := len(raw) - 1
	return (raw[0] == '{' && raw[last] == '}' || raw[0] == '[' && raw[last] == ']') &&
		len(bytes.TrimSpace(raw[1:last])) == 0
}
