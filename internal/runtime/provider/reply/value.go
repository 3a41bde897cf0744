package reply

import (
	"bytes"
	"encoding/json"
)

// A value is nil, a bool, a json.Number, a text, a []any or an *object.

// text is a string as it was written: what stands between its quotes, and what that means.
type text struct {
	raw, value string
	style      style
}

// style is how a string was quoted.
type style int

const (
	styleJSON   style = iota // in double quotes
	stylePython              // in single or triple quotes, or in a call as Python writes it
	styleRaw                 // without escapes
)

// object is an object in the order in which it was written.
type object struct {
	keys   []string
	values map[string]any
	twice  map[string]bool // keys that came again with another value
}

func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key]
}

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

// textOf returns a value that is a string.
func textOf(v any) string {
	t, _ := v.(text)
	return t.value
}

// encode writes a value as JSON.
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
		raw, _ := json.Marshal(v) // nil, a bool, or a number that was checked
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
