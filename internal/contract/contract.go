// Package contract makes promises checkable. It compiles a deliverable, in the seeds' constraint notation or as JSON
// Schema 2020-12, into a Schema, checks values against it, and reports deterministically how a value violates it. It
// also merges contracts by layer, computes their fingerprints, and parses signatures.
//
// A check looks at the shape of a value only, never at the meaning of words in it. A $ref never leaves the document,
// and nothing is loaded from files or the network. Schemas are immutable and safe for concurrent use. The package does
// no I/O and knows nothing of calls, models or stores.
//
// # Cost of a check
//
// A deliverable has at most 256 KiB and expands to at most 10,000 schemas. A check takes one step for each schema that
// looks at a part of the value, however long its enumerations are. uniqueItems takes n log n steps in the size of the
// value. A pattern takes time linear in the text and in the pattern. The steps are bounded before the check starts: a
// value that needs more than ten million is refused. A check with many steps stops when its context ends.
//
// # The two notations of a deliverable
//
// The seeds' notation has type, required, min_items (also as constraints.min_items) and
// constraints.properties.<key>.{type, min_items}. All other members are read as JSON Schema 2020-12, so the notations
// can be mixed. min_items means minItems wherever a schema is allowed; without a type, it implies an array. Annotations
// and formats are not asserted.
package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Limits of a deliverable and of a check.
const (
	maxNodes   = 10_000    // schemas after all references are expanded
	maxBytes   = 256 << 10 // of a deliverable
	maxDepth   = 128       // nesting of a deliverable
	maxChecked = 5_000_000 // members and elements of a checked value
	// the same, with keywords whose failures the library collects (contains, propertyNames ...)
	maxUnbounded  = 100_000
	maxBackEdges  = 256 // recursive references
	maxExponent   = 400 // of a number in a checked value; a larger one counts as 1e400
	maxDigits     = 800 // of a number in a checked value; a longer one is rounded
	maxListed     = 8   // enumerated values that the library compares one by one; see listed
	maxListedText = 256 // bytes of the identity of a value in a longer enumeration
	baseURL       = "https://contract.invalid/deliverable"
	maxShownKeys  = 64
	maxShownValue = 100
)

// An InvalidError names an invalid part of a deliverable. Pointer is a JSON pointer into it.
type InvalidError struct {
	Pointer string
	Reason  string
}

func (e *InvalidError) Error() string {
	if e.Pointer == "" {
		return "deliverable " + e.Reason
	}
	return "deliverable " + e.Pointer + " " + e.Reason
}

// A Schema is a compiled deliverable. A nil Schema, and that of an absent or empty deliverable, accepts every value.
// Its methods may be called concurrently.
type Schema struct {
	compiled  *jsonschema.Schema // nil accepts every value
	endable   sync.Pool          // of *endable, for checks with many steps
	root      map[string]any     // the translated document, for messages
	origin    origins
	unbounded bool // has keywords whose failures the library collects: see maxUnbounded
	unique    bool // has uniqueItems

	weight      int            // steps for each value, at most: see work.go
	patternSize int            // instructions of all patterns, for each byte of text
	patterns    map[string]int // instructions of each pattern
}

// Empty reports whether the schema accepts every value.
func (s *Schema) Empty() bool { return s == nil || s.compiled == nil }

// Compile compiles a deliverable that a person or client writes. A nil, null or empty deliverable compiles to an empty
// Schema. An invalid constraint is an *InvalidError, and so is an unknown name that looks like a misspelled constraint.
func Compile(deliverable json.RawMessage) (*Schema, error) {
	s, _, err := compile(deliverable, mode{refs: true, spelled: true})
	return s, err
}

// CompileStored is Compile for a deliverable that is stored, or was written for a program. Misspelled constraints are
// ignored, as other unknown names are.
func CompileStored(deliverable json.RawMessage) (*Schema, error) {
	s, _, err := compile(deliverable, mode{refs: true})
	return s, err
}

// compileTolerant compiles a deliverable that a program wrote. It leaves invalid constraints out and returns them. A
// $ref and an oversized deliverable are still an *InvalidError.
func compileTolerant(deliverable json.RawMessage) (*Schema, []InvalidError, error) {
	return compile(deliverable, mode{tolerant: true, spelled: true})
}

// mode is the strictness of a compilation.
type mode struct {
	tolerant bool // leave invalid constraints out instead of refusing them
	refs     bool // allow $ref within the document
	spelled  bool // a misspelled constraint is invalid
}

// compile translates and compiles a deliverable.
func compile(deliverable json.RawMessage, m mode) (*Schema, []InvalidError, error) {
	doc, err := decodeDeliverable(deliverable)
	if err != nil {
		return nil, nil, err
	}
	t := newTranslator(doc, m)
	root, err := t.document(doc)
	if err != nil {
		return nil, nil, err
	}
	if len(root) == 0 {
		return &Schema{}, t.reports, nil
	}
	compiled, err := build(root, nil)
	if err != nil {
		// the author of the deliverable does not know our URL
		reason := strings.ReplaceAll(err.Error(), baseURL, "")
		if _, after, found := strings.Cut(reason, " compilation failed: "); found {
			reason = after
		}
		return nil, nil, &InvalidError{Reason: "is not a usable schema: " + reason}
	}
	return &Schema{compiled: compiled, root: root, origin: t.origin, unbounded: t.unbounded, unique: t.unique,
		weight: t.weight, patternSize: t.patternSize, patterns: t.patterns}, t.reports, nil
}

// uses reports whether any of the keys occurs anywhere in the document.
func uses(doc any, keys ...string) bool {
	switch d := doc.(type) {
	case []any:
		return slices.ContainsFunc(d, func(e any) bool { return uses(e, keys...) })
	case map[string]any:
		for k, e := range d {
			if slices.Contains(keys, k) || uses(e, keys...) {
				return true
			}
		}
	}
	return false
}

// decodeDeliverable decodes a deliverable of at most maxBytes. It returns nil for an absent one.
func decodeDeliverable(raw json.RawMessage) (any, error) {
	if len(raw) > maxBytes {
		return nil, &InvalidError{Reason: fmt.Sprintf("has %d bytes; at most %d are read", len(raw), maxBytes)}
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	v, err := Decode(raw)
	if err != nil {
		return nil, &InvalidError{Reason: "is not JSON: " + err.Error()}
	}
	return v, nil
}

// Decode decodes one JSON value for CheckDecoded: numbers become json.Number.
func Decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

// build compiles the translated document with the library. end may be nil.
func build(root map[string]any, end *ending) (s *jsonschema.Schema, err error) {
	defer func() {
		// The translator passes only well-formed keywords. If the library panics anyway, the document of a stranger
		// must not crash the daemon.
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("%v", r)
		}
	}()
	text, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.LoadURL = func(url string) (io.ReadCloser, error) { return nil, fmt.Errorf("%s leaves the document", url) }
	c.RegisterExtension(extensionName, nil, ours{end})
	if err := c.AddResource(baseURL, bytes.NewReader(text)); err != nil {
		return nil, err
	}
	return c.Compile(baseURL)
}
