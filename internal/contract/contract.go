// Package contract makes promises checkable. It compiles a deliverable, in the seeds' constraint notation or as JSON Schema
// 2020-12, into a Schema; checks values against it; and says exactly, and the same way every time, how a value falls
// short. It also merges contracts by layer, computes their fingerprints, and parses signatures.
//
// A check looks at the shape only, never at the meaning of words in a value. A $ref never leaves the document, nothing is loaded from
// files or the network. Schemas are immutable and safe for concurrent use. The package does no I/O and knows nothing of calls, models or stores.
//
// # What a check costs
//
// A deliverable has at most 256 KiB and expands to at most 10,000 schemas. A check takes a step for each schema that looks at a value of the
// checked one, whatever enumerations hold; uniqueItems takes n log n in the value's size, a pattern a time that is linear in the text and in the
// pattern. Before anything is checked the steps are counted: above ten million the value is refused. One that takes many ends with its context.
//
// # The two notations of a deliverable
//
// The seeds' notation has type, required, min_items (also as constraints.min_items) and
// constraints.properties.<key>.{type, min_items}. Everything else in the object is read as JSON Schema 2020-12, so the
// two may be mixed. min_items means minItems wherever a schema is allowed; without a type, it
// implies an array. Annotations and formats are not asserted.
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
	MaxNodes   = 10_000    // schemas after every $ref is expanded
	MaxBytes   = 256 << 10 // of a deliverable
	MaxDepth   = 128       // nesting of a deliverable
	MaxChecked = 5_000_000 // values (members and elements) that a check looks at
	// the same, under keywords whose failures cannot be cut short (contains, propertyNames ...)
	MaxUnbounded  = 100_000
	maxBackEdges  = 256 // recursive references
	maxExponent   = 400 // of a number in a checked value; larger ones count as 1e400
	maxDigits     = 800 // of a number in a checked value; longer ones are rounded
	maxListed     = 8   // enumerated values that are compared one by one
	maxListedText = 256 // bytes of the identity of one that is not
	baseURL       = "https://contract.invalid/deliverable"
	maxShownKeys  = 64
	maxShownValue = 100
)

// An InvalidError names the part of a contract that makes no sense. Pointer is a JSON pointer into the deliverable.
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

// A Schema is a compiled deliverable. The nil Schema, and that of an absent or empty deliverable, accepts everything.
type Schema struct {
	compiled  *jsonschema.Schema // nil accepts everything
	endable   sync.Pool          // of *endable: the same for checks that take many steps
	root      map[string]any     // as translated, for the text of violations
	origin    origins
	unbounded bool // uses keywords whose failures cannot be cut short
	unique    bool // uses uniqueItems

	weight      int            // what it may cost each value, in steps: see work.go
	patternSize int            // the same for text, per byte
	patterns    map[string]int // cost of each pattern
}

// Empty reports whether the schema checks nothing.
func (s *Schema) Empty() bool { return s == nil || s.compiled == nil }

// Compile makes a Schema of a deliverable that a person or client writes. A nil, null or empty deliverable compiles to an
// empty Schema. Whatever makes no sense is refused with an *InvalidError.
func Compile(deliverable json.RawMessage) (*Schema, error) {
	s, _, err := compile(deliverable, mode{refs: true, spelled: true})
	return s, err
}

// CompileStored is Compile for what is stored, or was written for a program: a misspelt constraint annotates, as other unknown names do.
func CompileStored(deliverable json.RawMessage) (*Schema, error) {
	s, _, err := compile(deliverable, mode{refs: true})
	return s, err
}

// CompileTolerant makes a Schema of a deliverable that a program wrote. Constraints that make no sense are left out and
// reported; a $ref and an oversized deliverable are still refused with an *InvalidError.
func CompileTolerant(deliverable json.RawMessage) (*Schema, []InvalidError, error) {
	return compile(deliverable, mode{tolerant: true, spelled: true})
}

// mode is how strict a compilation is.
type mode struct {
	tolerant bool // leave out what makes no sense, instead of refusing it
	refs     bool // allow $ref within the document
	spelled  bool // a constraint with a name that is nearly right makes no sense
}

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
		reason := strings.ReplaceAll(err.Error(), baseURL, "")
		if _, after, found := strings.Cut(reason, " compilation failed: "); found {
			reason = after
		}
		return nil, nil, &InvalidError{Reason: "is not a usable schema: " + reason}
	}
	return &Schema{compiled: compiled, root: root, origin: t.origin, unbounded: t.unbounded, unique: t.unique,
		weight: t.weight, patternSize: t.patternSize, patterns: t.patterns}, t.reports, nil
}

// uses reports whether one of the keys stands anywhere in the document.
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

// decodeDeliverable returns nil for an absent deliverable.
func decodeDeliverable(raw json.RawMessage) (any, error) {
	if len(raw) > MaxBytes {
		return nil, &InvalidError{Reason: fmt.Sprintf("has %d bytes; at most %d are read", len(raw), MaxBytes)}
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

// Decode reads one JSON value as CheckDecoded wants it: numbers are json.Number.
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

// build hands the translated document to the schema library.
func build(root map[string]any, end *ending) (s *jsonschema.Schema, err error) {
	defer func() {
		// The translator lets only well-formed keywords through; should the library still stumble over a document that a
		// stranger wrote, the document is refused and the daemon lives.
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
