package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// callParams are the parameters of recurgent.Tool.CallWith.
type callParams = struct {
	Role   string         `json:"role"`
	Method string         `json:"method"`
	Args   []any          `json:"args"`
	Kwargs map[string]any `json:"kwargs"`
}

// A refusedCall is a nested call that cannot be made, because some of its arguments cannot be encoded as JSON. A text
// replaces each of those. The daemon keeps a record of the call.
type refusedCall struct {
	Role   string                     `json:"role"`
	Method string                     `json:"method"`
	Args   []json.RawMessage          `json:"args"`
	Kwargs map[string]json.RawMessage `json:"kwargs"`
	Unsafe string                     `json:"unsafe"` // the reason; never empty
}

// refuse returns the refusedCall of p. It tries each argument by itself. fits returns an error for encoded values that
// are not allowed.
func refuse(p callParams, encode func(any) (json.RawMessage, error), fits func(json.RawMessage) error) refusedCall {
	r := refusedCall{Role: p.Role, Method: p.Method, Args: make([]json.RawMessage, len(p.Args)),
		Kwargs: make(map[string]json.RawMessage, len(p.Kwargs))}
	safe := func(at string, v any) json.RawMessage {
		raw, err := encode(v)
		if err == nil {
			err = fits(raw)
		}
		if err == nil {
			return raw
		}
		if r.Unsafe == "" {
			r.Unsafe = wire.BoundText([]byte(at+": "+err.Error()), 400)
		}
		text, _ := json.Marshal(inspect(v)) // a string always encodes
		return text
	}
	for i, v := range p.Args {
		r.Args[i] = safe("argument "+strconv.Itoa(i+1), v)
	}
	for _, k := range slices.Sorted(maps.Keys(p.Kwargs)) {
		r.Kwargs[wire.ValidText([]byte(k))] = safe("argument "+strconv.Quote(wire.BoundText([]byte(k), 40)),
			p.Kwargs[k])
	}
	if r.Unsafe == "" {
		r.Unsafe = "the arguments together have no JSON form"
	}
	return r
}

// Bounds of a text that replaces a value.
const (
	inspectBytes = 400
	inspectDepth = 4
	inspectItems = 8
)

// inspect describes a value that cannot be encoded as JSON in a short text. The same value gives the same text in every
// process: the text holds no address, maps are sorted by key, and only a few levels are visited, so cycles end. inspect
// calls no method of the value.
func inspect(v any) (text string) {
	w := inspector{}
	defer func() {
		if recover() != nil { // the interpreter has values that reflect cannot read
			text = "(unreadable)"
		}
	}()
	w.value(reflect.ValueOf(v), inspectDepth)
	return wire.BoundText([]byte(w.b.String()), inspectBytes)
}

type inspector struct{ b strings.Builder }

func (w *inspector) full() bool { return w.b.Len() > inspectBytes }

func (w *inspector) value(v reflect.Value, depth int) {
	if w.full() {
		return
	}
	switch v.Kind() {
	case reflect.Invalid:
		w.b.WriteString("null")
	case reflect.Bool:
		w.b.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.b.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		w.b.WriteString(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		w.float(v.Float())
	case reflect.Complex64, reflect.Complex128:
		fmt.Fprint(&w.b, v.Complex())
	case reflect.String:
		w.b.WriteString(strconv.Quote(wire.BoundText([]byte(v.String()), inspectBytes)))
	case reflect.Interface, reflect.Pointer:
		w.behind(v, depth)
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		w.parts(v, depth)
	default: // a channel, a function
		w.b.WriteString("(" + v.Kind().String() + ")")
	}
}

func (w *inspector) float(f float64) {
	switch {
	case math.IsNaN(f):
		w.b.WriteString("NaN")
	case math.IsInf(f, 0):
		w.b.WriteString(map[bool]string{true: "+Inf", false: "-Inf"}[f > 0])
	default:
		w.b.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
	}
}

// behind writes what a pointer or an interface refers to. Interfaces do not count towards the depth.
func (w *inspector) behind(v reflect.Value, depth int) {
	switch {
	case v.IsNil():
		w.b.WriteString("null")
	case v.Kind() == reflect.Interface:
		w.value(v.Elem(), depth)
	case depth == 0:
		w.b.WriteString("...")
	default:
		w.value(v.Elem(), depth-1)
	}
}

// parts writes the parts of a composite value, within the bounds of depth and width.
func (w *inspector) parts(v reflect.Value, depth int) {
	if depth == 0 {
		w.b.WriteString("...")
		return
	}
	open, shut, n := "[", "]", 0
	var part func(i int)
	switch v.Kind() {
	case reflect.Struct:
		open, shut, n = "{", "}", v.NumField()
		part = func(i int) {
			w.b.WriteString(v.Type().Field(i).Name + ": ")
			w.value(v.Field(i), depth-1)
		}
	case reflect.Map:
		open, shut, n = "{", "}", v.Len()
		keys := w.keys(v)
		part = func(i int) {
			w.b.WriteString(keys[i].text + ": ")
			w.value(v.MapIndex(keys[i].key), depth-1)
		}
	default:
		n = v.Len()
		part = func(i int) { w.value(v.Index(i), depth-1) }
	}
	w.b.WriteString(open)
	for i := range min(n, inspectItems) {
		if i > 0 {
			w.b.WriteString(", ")
		}
		part(i)
	}
	if n > inspectItems {
		w.b.WriteString(", ... " + strconv.Itoa(n-inspectItems) + " more")
	}
	w.b.WriteString(shut)
}

type inspectedKey struct {
	text string
	key  reflect.Value
}

func (w *inspector) keys(m reflect.Value) []inspectedKey {
	keys := make([]inspectedKey, 0, m.Len())
	for _, k := range m.MapKeys() {
		inner := inspector{}
		inner.value(k, 1)
		keys = append(keys, inspectedKey{inner.b.String(), k})
	}
	slices.SortFunc(keys, func(a, b inspectedKey) int { return strings.Compare(a.text, b.text) })
	return keys
}
