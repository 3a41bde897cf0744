package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
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

// leaf is one failure that the library found.
type leaf struct {
	at      []string // path of the invalid value
	keyword []string // path of the violated keyword in the translated document
	text    string   // set only if the library could not check the value
}

// firstLeaf selects the failure nearest to the root. Among equals the order of keys decides, so the choice does not
// depend on the iteration order of maps. Failures within alternatives (anyOf, oneOf) are ignored; the alternative
// itself counts.
func firstLeaf(e *jsonschema.ValidationError) leaf {
	var best *leaf
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		keyword := pathOf(fragment(e.AbsoluteKeywordLocation))
		last := ""
		if len(keyword) > 0 {
			last = keyword[len(keyword)-1]
		}
		if len(e.Causes) > 0 && (e.Message == "" || last != "anyOf" && last != "oneOf") {
			for _, c := range e.Causes {
				walk(c)
			}
			return
		}
		l := leaf{at: pathOf(e.InstanceLocation), keyword: keyword}
		if best == nil || l.before(*best) {
			best = &l
		}
	}
	walk(e)
	return *best
}

// before orders failures: by depth, then by position, then by keyword.
func (l leaf) before(o leaf) bool {
	if d := len(l.at) - len(o.at); d != 0 {
		return d < 0
	}
	for i := range l.at {
		if d := compareTokens(l.at[i], o.at[i]); d != 0 {
			return d < 0
		}
	}
	if d := l.rank() - o.rank(); d != 0 {
		return d < 0
	}
	return slices.Compare(l.keyword, o.keyword) < 0
}

// rank orders the keywords that fail at the same value: first its type, then missing keys, then the rest.
func (l leaf) rank() int {
	switch l.last() {
	case "type":
		return 0
	case "required":
		return 1
	case "minItems":
		return 2
	}
	return 3
}

// last returns the violated keyword.
func (l leaf) last() string {
	if len(l.keyword) == 0 {
		return ""
	}
	return l.keyword[len(l.keyword)-1]
}

// compareTokens compares indexes as numbers and other keys as text.
func compareTokens(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return x - y
	}
	return strings.Compare(a, b)
}

// fragment returns the part of a URL after "#".
func fragment(u string) string {
	_, f, _ := strings.Cut(u, "#")
	return f
}

// pathOf splits a location of the library into unescaped tokens.
func pathOf(location string) []string {
	if location == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(location, "/"), "/")
	for i, t := range tokens {
		tokens[i] = unescapeToken(t)
	}
	return tokens
}

// manySteps is the number of steps from which a check can be interrupted. Fewer take milliseconds.
const manySteps = 20_000

// errEnded is the value of the panic that interrupts a check.
var errEnded = errors.New("the check was ended")

// An ending interrupts a check when its context ends, since the library takes no context. Each check has its own.
type ending struct {
	ctx  context.Context // of the check that is under way
	left int             // steps until ctx is checked again
}

// step panics with errEnded if the context has ended. A nil ending never does.
func (e *ending) step() {
	if e == nil {
		return
	}
	if e.left--; e.left > 0 {
		return
	}
	if e.left = 256; e.ctx.Err() != nil {
		panic(errEnded)
	}
}

// An endable is a compiled document for one check at a time, which can be interrupted.
type endable struct {
	compiled *jsonschema.Schema
	end      *ending
}

// validateUntil is validate that returns errEnded when ctx ends.
func (s *Schema) validateUntil(ctx context.Context, v any) error {
	x, _ := s.endable.Get().(*endable)
	if x == nil {
		x = &endable{end: &ending{}}
		var err error
		if x.compiled, err = build(s.root, x.end); err != nil {
			return err // not reached: the same document was built before
		}
	}
	x.end.ctx, x.end.left = ctx, 0
	err := validate(x.compiled, v)
	x.end.ctx = nil
	s.endable.Put(x)
	return err
}
