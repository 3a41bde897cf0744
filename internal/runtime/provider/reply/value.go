package reply

import (
	"bytes"
	"encoding/json"
)

// Values are nil, bool, json.Number, text, []any and *object.

// text is a string with its source between the quotes and its decoded value.
type text struct {
	raw, value string
	style      style
}

// style is the quotation style of a string.
type style int

const (
	styleJSON   style = iota // double quotes
	stylePython              // single or triple quotes, or an argument in Python syntax
	styleRaw                 // without escapes
)

// object is a JSON object that preserves the order of its keys.
type object struct {
	keys   []string
	values map[string]any
	twice  map[string]bool // keys that occurred again with another value
}

func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key]
}

// put sets a member. A key that occurs again with another value is recorded in twice; the last value counts.
func (o *object) put(key string, v any) {
	old, again := o.values[key]
	switch {
	case !again:
		o.keys = append(o.keys, key)
	case !bytes.Equal(encode(old), encode(v)):
		if o.twice == nil {
			o.twice = map[string]bool{}
		}
		o.twice[key] = true
	}
	o.values[key] = v
}

func newObject() *object { return &object{values: map[string]any{}} }

// textOf returns v if it is a string, otherwise "".
func textOf(v any) string {
	t, _ := v.(text)
	return t.value
}

// encode returns a value as JSON.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	write(&b, v)
	return b.Bytes()
}

func write(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case text:
		b.Write(quoted(v.value))
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, e)
		}
		b.WriteByte(']')
	case *object:
		b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quoted(k))
			b.WriteByte(':')
			write(b, v.values[k])
		}
		b.WriteByte('}')
	default:
		raw, _ := json.Marshal(v) // nil, a bool, or a valid number
		b.Write(raw)
	}
}

func quoted(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
