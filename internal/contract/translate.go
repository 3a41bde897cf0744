package contract

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// translator translates a deliverable to a document of checked keywords only. Schemas that a $ref names move to $defs:
// the references need no escaping then, and violations can still name the original path.
type translator struct {
	mode
	reports   []InvalidError
	anchors   map[string]string // anchor to pointer
	places    map[string]any    // translated schemas by their pointer in the deliverable, each an object or a bool
	found     []*reference
	nodes     int            // schemas and enumerated values so far
	unbounded bool           // see Schema.unbounded
	unique    bool           // the document has uniqueItems
	evaluates bool           // the document has unevaluated keywords
	unknown   bool           // the document has a name that is neither a keyword nor a known annotation
	patterns  map[string]int // instructions of each pattern
	size      int            // instructions of all patterns
	origin    origins

	weight, patternSize int // totals with all references expanded: see work.go
}

func newTranslator(doc any, m mode) *translator {
	return &translator{mode: m, anchors: map[string]string{}, places: map[string]any{},
		evaluates: uses(doc, "unevaluatedItems", "unevaluatedProperties"), patterns: map[string]int{},
		origin: origins{hoisted: map[string]string{}, renamed: map[string]bool{}, implied: map[string]bool{}}}
}

// A reference is a $ref of the deliverable. Others, such as $dynamicRef, count as one.
type reference struct {
	at     string // pointer of the referring schema
	text   string
	in     map[string]any // the referring schema, translated
	target string         // pointer of the schema that text refers to; set by link
}

const maxReports = 32 // bounds reports

// problem returns an error, or in tolerant mode records the fault and returns nil.
func (t *translator) problem(at, reason string) error {
	if !t.tolerant {
		return &InvalidError{at, reason}
	}
	if len(t.reports) < maxReports {
		t.reports = append(t.reports, InvalidError{at, reason})
	}
	return nil
}

// document translates a whole deliverable. It returns nil if there is nothing to check.
func (t *translator) document(doc any) (map[string]any, error) {
	if doc == nil {
		return nil, nil
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return nil, t.problem("", "must be an object: {type, required, min_items, constraints} or a JSON Schema")
	}
	if s, ok := m["$schema"].(string); ok && strings.TrimSuffix(s,
		"#") != "https://json-schema.org/draft/2020-12/schema" {
		if err := t.problem("/$schema",
			"must be https://json-schema.org/draft/2020-12/schema, or left out"); err != nil {
			return nil, err
		}
	}
	root, err := t.schema(m, "", 0)
	if err != nil {
		return nil, err
	}
	if err := t.constraints(m, root); err != nil {
		return nil, err
	}
	return t.link(root)
}

// schema translates the schema at a pointer.
func (t *translator) schema(m map[string]any, at string, depth int) (map[string]any, error) {
	if t.nodes++; t.nodes > maxNodes {
		return nil, &InvalidError{at, fmt.Sprintf("is one schema too many: at most %d are allowed", maxNodes)}
	}
	if depth > maxDepth {
		return nil, &InvalidError{at, fmt.Sprintf("is nested deeper than %d", maxDepth)}
	}
	out := map[string]any{}
	t.places[at] = out
	for _, name := range sortedKeys(m) {
		if err := t.keyword(m, out, name, at, depth); err != nil {
			return nil, err
		}
	}
	if err := t.minItems(m, out, at); err != nil {
		return nil, err
	}
	for _, p := range pairs() {
		lo, hi := floatOf(out[p[0]]), floatOf(out[p[1]])
		if out[p[0]] != nil && out[p[1]] != nil && lo > hi {
			if err := t.problem(at+"/"+p[0], "is above "+p[1]+": no value could ever fit"); err != nil {
				return nil, err
			}
			// in tolerant mode the upper bound stays
			delete(out, p[0])
		}
	}
	t.cutShort(out)
	return out, nil
}

// cutShort renames the keywords that a large value makes expensive, so that our extension checks them. If the document
// has unevaluated keywords, the library must check items and members itself.
func (t *translator) cutShort(out map[string]any) {
	rename := func(from, to string) {
		if v, ok := out[from]; ok {
			out[to] = v
			delete(out, from)
		}
	}
	if rename("uniqueItems", extUnique); out[extUnique] == true {
		t.unique = true
	}
	if list, _ := out["enum"].([]any); listed(list) {
		rename("enum", extEnum)
	}
	if t.evaluates {
		return
	}
	rename("items", extItems)
	if _, ok := out["additionalProperties"].(map[string]any); ok && out["patternProperties"] == nil {
		rename("additionalProperties", extAdditional)
	}
}

// keyword translates one keyword of m into out.
func (t *translator) keyword(m, out map[string]any, name, at string, depth int) error {
	here, v := at+"/"+escapeToken(name), m[name]
	switch name {
	case "$ref", "$dynamicRef", "$recursiveRef":
		return t.reference(out, name, v, here, at)
	case "$anchor", "$dynamicAnchor":
		if s, ok := v.(string); ok {
			t.anchors[s] = at
		}
		return nil
	case "$id":
		if at != "" {
			return t.problem(here, "is not supported below the top: a contract is one document")
		}
		return nil
	}
	k, ok := keywordOf(name)
	if !ok {
		if meant := meantName(name); t.spelled && meant != "" {
			return t.problem(here, "is no constraint: it is written "+meant)
		}
		t.unknown = t.unknown || !silent(name, at)
		return nil
	}
	copied, reason, err := t.value(k, v, here, depth)
	if err != nil {
		return err
	}
	if reason != "" {
		return t.problem(here, reason)
	}
	switch name {
	case "$defs", "definitions":
		return nil // link copies the parts that a $ref names
	case "contains", "propertyNames", "patternProperties", "unevaluatedItems", "unevaluatedProperties":
		t.unbounded = true
	}
	out[name] = copied
	return nil
}

// reference records a reference for link. It refuses one that leaves the document, and all of them unless mode.refs is
// set.
func (t *translator) reference(out map[string]any, name string, v any, here, at string) error {
	s, ok := v.(string)
	switch {
	case !ok:
		return t.problem(here, "must be a string")
	case !t.mode.refs:
		return &InvalidError{here, "is not allowed in a contract that a program writes: spell the schema out"}
	case name != "$ref" && s == "" || s != "" && !strings.HasPrefix(s, "#"):
		return &InvalidError{here, "leaves the document: only references that begin with # are followed"}
	}
	t.found = append(t.found, &reference{at: at, text: s, in: out})
	return nil
}

// minItems translates the seeds' min_items to minItems. Without a type, it implies an array.
func (t *translator) minItems(m, out map[string]any, at string) error {
	v, ok := m["min_items"]
	if !ok {
		return nil
	}
	here := at + "/min_items"
	n, ok := wholeNumber(v, t.tolerant)
	if !ok {
		return t.problem(here, "must be a whole number from 0")
	}
	if ty, ok := out["type"]; ok && !allowsType(ty, "array") {
		return t.problem(here, "stands beside a type that has no items")
	}
	if _, ok := out["type"]; !ok {
		out["type"] = "array"
		t.origin.implied[at+"/type"] = true
	}
	if old, ok := out["minItems"]; !ok || floatOf(old) < floatOf(n) {
		out["minItems"] = n
		t.origin.renamed[at+"/minItems"] = true
	}
	return nil
}

// constraints translates the seeds' member constraints to a further schema in allOf.
func (t *translator) constraints(m, root map[string]any) error {
	v, ok := m["constraints"]
	if !ok || v == nil {
		return nil
	}
	c, ok := v.(map[string]any)
	if !ok {
		return t.problem("/constraints", "must be an object")
	}
	if ty, ok := root["type"]; ok && c["min_items"] != nil && !allowsType(ty, "array") {
		if err := t.problem("/constraints/min_items", "stands under a type that has no items"); err != nil {
			return err
		}
		c = maps.Clone(c)
		delete(c, "min_items")
	}
	extra, err := t.schema(c, "/constraints", 1)
	if err != nil || len(extra) == 0 {
		return err
	}
	all, _ := root["allOf"].([]any)
	t.origin.constraints = "/allOf/" + strconv.Itoa(len(all))
	root["allOf"] = append(slices.Clip(all), extra)
	return nil
}

// sortedKeys returns the keys in order: output must not depend on the iteration order of maps.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// escapeToken encodes a key as a token of a JSON pointer (RFC 6901).
func escapeToken(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// unescapeToken decodes a token of a JSON pointer in a URL fragment.
func unescapeToken(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		s = u
	}
	return unescaped(s)
}

// Limits of registered contracts. They are kept in memory, in prompts, and in the registry's file.
const (
	MaxTermsBytes = 256 << 10 // bytes of the texts of one contract
	MaxMethods    = 1000      // methods of a role that may have a contract
)

// CheckTerms returns nil if a client's contract is valid and within the limits, else an *agent.InputError with a
// pointer below the given one. A nil contract is valid.
func CheckTerms(k *agent.Contract, pointer string) error {
	if n := size(k); n > MaxTermsBytes {
		return &agent.InputError{Code: "too_large", Pointer: pointer,
			Detail: fmt.Sprintf("the contract has %d bytes, at most %d are kept", n, MaxTermsBytes)}
	}
	if k == nil || len(k.Deliverable) == 0 {
		return checkSignature(k, pointer)
	}
	_, err := Compile(k.Deliverable)
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return &agent.InputError{Code: "invalid_contract", Pointer: pointer + "/deliverable" + invalid.Pointer,
			Detail: invalid.Reason,
			Hint:   "see docs/contracts.md for the constraints that are checked"}
	}
	if err != nil {
		return err
	}
	return checkSignature(k, pointer)
}

// size returns the bytes of a contract's texts.
func size(k *agent.Contract) int {
	if k == nil {
		return 0
	}
	return len(k.Purpose) + len(k.Deliverable) + len(k.Acceptance) + len(k.FailurePolicy) + len(k.Signature)
}

// checkSignature returns an *agent.InputError if the contract has an invalid signature.
func checkSignature(k *agent.Contract, pointer string) error {
	if k == nil || len(k.Signature) == 0 {
		return nil
	}
	if _, err := ParseNewSignature(k.Signature); err != nil {
		return &agent.InputError{Code: "invalid_contract", Pointer: pointer + "/signature", Detail: err.Error(),
			Hint: `{"inputs": [{"name": "question"}], "outputs": [{"name": "answer"}]}`}
	}
	return nil
}

// constraintNames are the names of all constraints.
var constraintNames = strings.Fields(
	"type enum const minItems maxItems minLength maxLength minProperties maxProperties minContains maxContains minimum maximum " +
		"exclusiveMinimum exclusiveMaximum multipleOf uniqueItems pattern required dependentRequired items additionalProperties contains propertyNames " +
		"unevaluatedItems unevaluatedProperties not if then else allOf anyOf oneOf prefixItems properties patternProperties dependentSchemas " +
		"min_items constraints")

// annotations are names that check nothing.
var annotations = strings.Fields(
	"title description default example examples format deprecated readOnly writeOnly contentEncoding contentMediaType contentSchema definitions")

// silent reports whether an unknown name is known to check nothing at that place, or is handled elsewhere.
func silent(name, at string) bool {
	return name == "min_items" || name == "constraints" && at == "" || name == "$schema" || name == "$comment" ||
		slices.Contains(annotations, name)
}

// leastTypo is the least length of a name in which one wrong letter counts as a typo. Shorter names too easily resemble
// other words.
const leastTypo = 6

// meantName returns the constraint that an unknown name was probably meant to be, or "". Case, separators, a plural,
// and minimum for min do not count as differences. From leastTypo letters on, one letter may be wrong, missing, added
// or transposed; from 8 letters on, two. A name that is two letters longer or shorter, such as requiredIf, is another
// word.
func meantName(name string) string {
	if slices.Contains(constraintNames, name) || slices.Contains(annotations, name) || strings.HasPrefix(name, "$") ||
		strings.HasPrefix(name, "x-") || len(name) > 40 {
		return ""
	}
	var meant string
	nearest := 1 + min(1, len(bareName(name))/leastTypo) + min(1, len(bareName(name))/8)
	for _, known := range constraintNames {
		far := min(typos(PlainWord(name), PlainWord(known)), typos(bareName(name), bareName(known)))
		if far < nearest && (far == 0 || PlainWord(name)[0] == known[0]) {
			meant, nearest = known, far
		}
	}
	return meant
}

// PlainWord removes everything but letters and digits, and converts to lower case, so that words which differ only by
// case or separators become equal.
func PlainWord(key string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, key)
}

// bareName is PlainWord with further variants removed: minimum, maximum, length and plurals.
func bareName(name string) string {
	name = strings.NewReplacer("minimum", "min", "maximum", "max", "length", "len").Replace(PlainWord(name))
	if rest, ok := strings.CutSuffix(name, "ies"); ok {
		return rest + "y"
	}
	return strings.TrimSuffix(name, "s")
}

// typos returns the edit distance of texts whose lengths differ by at most one, and a large number for others.
func typos(a, b string) int {
	if longer := len(a) - len(b); longer < -1 || longer > 1 {
		return len(a) + len(b)
	}
	return edits(a, b)
}

// edits returns the optimal string alignment distance of two short texts: substitutions, deletions, insertions and
// transpositions of neighbors.
func edits(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func differ(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
