package local

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// ErrOutside is returned by Check for a case that cannot be checked here: its answer depends on a network or a model
// and is not recorded, or it is described only by a JSON Schema.
var ErrOutside = errors.New("this case shows nothing here")

// A Case is a call with its expected answer: an example that a person fixed, or a recorded call.
type Case struct {
	Name    string                     `json:"-"`
	ID      string                     `json:"id"`
	Args    []json.RawMessage          `json:"args"`
	Kwargs  map[string]json.RawMessage `json:"kwargs"`
	Context map[string]any             `json:"context"`
	Expect  Expectation                `json:"expect"`
	// Tolerance is the largest absolute difference of numbers; nil means 1e-9 relative.
	Tolerance *float64            `json:"tolerance"`
	Effects   json.RawMessage     `json:"effects"` // recorded external inputs of the call
	Files     map[string]HeldFile `json:"-"`       // files given to the cases, by id

	dir string // of the program
}

// Expectation describes the demanded answer. One of its members is set.
type Expectation struct {
	Value     json.RawMessage `json:"value"`
	ErrorType string          `json:"error_type"`
	Schema    json.RawMessage `json:"schema"`
}

// Cases reads the cases in a program's directory, from examples.json and recorded.json. Missing files count as empty.
func Cases(dir string) ([]Case, error) {
	var examples struct {
		Examples []Case `json:"examples"`
	}
	var recorded struct {
		Effects map[string]json.RawMessage `json:"effects"`  // of examples, by id
		Files   map[string]HeldFile        `json:"files"`    // of all cases, by id
		LeftOut []string                   `json:"left_out"` // ids of examples that are not tests here
		Calls   []Case                     `json:"calls"`
	}
	if err := errors.Join(readFile(filepath.Join(dir, "examples.json"), &examples),
		readFile(filepath.Join(dir, "recorded.json"), &recorded)); err != nil {
		return nil, err
	}
	var all []Case
	for i, c := range examples.Examples {
		c.Name, c.Effects = "example "+cmp.Or(c.ID, strconv.Itoa(i+1)), recorded.Effects[c.ID]
		if !slices.Contains(recorded.LeftOut, c.ID) || c.ID == "" {
			all = append(all, c)
		}
	}
	for _, c := range recorded.Calls {
		c.Name = "recorded " + c.ID
		all = append(all, c)
	}
	for i := range all {
		all[i].Files, all[i].dir = recorded.Files, dir
	}
	return all, nil
}

// readFile decodes a file. A missing file leaves v unchanged.
func readFile(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Check runs a program on a case, without network or model. The error describes how the answer differs, or is
// ErrOutside.
func Check(programs []Program, p Program, c Case) error {
	r := &run{host: &Host{Programs: programs}, check: true, held: maps.Clone(c.Files), dir: c.dir}
	defer r.closeAll()
	if c.Effects != nil {
		r.tape = &tape{}
		if err := json.Unmarshal(c.Effects, r.tape); err != nil {
			return err
		}
		r.tape.used = make([]bool, len(r.tape.Asks))
	}
	if c.Expect.Schema != nil {
		return fmt.Errorf("%w: it demands a schema", ErrOutside)
	}
	got := r.call(Request{Role: p.Role, Method: p.Method, Args: c.Args, Kwargs: c.Kwargs, Context: c.Context}, 0)
	switch {
	case r.lacks != "" && r.tape == nil:
		return fmt.Errorf("%w: it needs %s", ErrOutside, r.lacks)
	case r.lacks != "":
		return fmt.Errorf("it asks for %s, which the recorded call did not", r.lacks)
	case c.Expect.ErrorType != "":
		if got.ErrorType != c.Expect.ErrorType {
			return fmt.Errorf("got %s, want an error of the type %s", got, c.Expect.ErrorType)
		}
		return nil
	case got.OK && r.madeOther(got.Value) != "":
		return fmt.Errorf("the file %s has other bytes than the one of the recorded call", r.madeOther(got.Value))
	case !got.OK || !equal(c.Expect.Value, got.Value, c.Tolerance):
		return fmt.Errorf("got %s, want %s", got, compact(c.Expect.Value))
	}
	return nil
}

// compact returns JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// String returns the value or the error of the outcome.
func (o Outcome) String() string {
	if o.OK {
		return string(o.Value)
	}
	return "error " + o.ErrorType + ": " + o.ErrorMessage
}

func equal(want, got json.RawMessage, tolerance *float64) bool {
	var a, b any
	return decode(want, &a) == nil && decode(got, &b) == nil && alike(a, b, tolerance)
}

func decode(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}

// alike compares decoded JSON values. Numbers are compared by near.
func alike(a, b any, tolerance *float64) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && near(a, b, tolerance)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !alike(a[i], b[i], tolerance) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k := range a {
			if other, ok := b[k]; !ok || !alike(a[k], other, tolerance) {
				return false
			}
		}
		return true
	}
	return a == b
}

// near compares numbers. Without a tolerance, integers must be equal to the last digit.
func near(a, b json.Number, tolerance *float64) bool {
	x, okX := new(big.Int).SetString(a.String(), 10)
	y, okY := new(big.Int).SetString(b.String(), 10)
	if okX && okY && tolerance == nil {
		return x.Cmp(y) == 0
	}
	f, errF := a.Float64()
	g, errG := b.Float64()
	if errF != nil || errG != nil {
		return a == b
	}
	if tolerance != nil {
		return math.Abs(f-g) <= *tolerance
	}
	return math.Abs(f-g) <= 1e-9*max(math.Abs(f), math.Abs(g))
}
