package plain

import "github.com/recurgentd/recurgentd/internal/runtime/recurgent"

// Decode returns what recurgent.Unmarshal stores in an empty interface, and its error. All strings share one copy of
// the text, so each keeps the whole text in memory.
func Decode(data []byte) (any, error) {
	d := decoder{text: string(data)}
	d.space()
	if v, ok := d.value(maxDepth); ok {
		if d.space(); d.at == len(d.text) {
			return v, nil
		}
	}
	var v any
	err := recurgent.Unmarshal(data, &v)
	return v, err
}

// A decoder reads text from index at. Its methods return false for input that is left to encoding/json.
type decoder struct {
	text string
	at   int
}

// peek returns the next byte, or 0 at the end.
func (d *decoder) peek() byte {
	if d.at < len(d.text) {
		return d.text[d.at]
	}
	return 0
}

func (d *decoder) space() {
	for d.at < len(d.text) {
		switch d.text[d.at] {
		case ' ', '\n', '\t', '\r':
			d.at++
		default:
			return
		}
	}
}

func (d *decoder) value(depth int) (any, bool) {
	switch d.peek() {
	case '"':
		s, ok := d.str()
		return s, ok
	case '{':
		return d.object(depth - 1)
	case '[':
		return d.array(depth - 1)
	case 't':
		return true, d.word("true")
	case 'f':
		return false, d.word("false")
	case 'n':
		return nil, d.word("null")
	}
	return d.number()
}

func (d *decoder) word(w string) bool {
	if len(d.text)-d.at < len(w) || d.text[d.at:d.at+len(w)] != w {
		return false
	}
	d.at += len(w)
	return true
}

// next skips whitespace and the following separator or end of a list. It reports whether that was the end, and whether
// it was either.
func (d *decoder) next(end byte) (last, ok bool) {
	d.space()
	c := d.peek()
	d.at++
	return c == end, c == end || c == ','
}

func (d *decoder) array(depth int) (any, bool) {
	list := []any{} // grown as by encoding/json, because programs can see the capacity
	d.at++
	d.space()
	if d.peek() == ']' {
		d.at++
		return list, true
	}
	for depth > 0 {
		d.space()
		v, ok := d.value(depth)
		if !ok {
			return nil, false
		}
		list = append(list, v)
		if last, ok := d.next(']'); last || !ok {
			return list, ok
		}
	}
	return nil, false
}

func (d *decoder) object(depth int) (any, bool) {
	m := map[string]any{}
	d.at++
	d.space()
	if d.peek() == '}' {
		d.at++
		return m, true
	}
	for depth > 0 {
		d.space()
		if d.peek() != '"' {
			return nil, false
		}
		key, ok := d.str()
		d.space()
		if !ok || d.peek() != ':' {
			return nil, false
		}
		d.at++
		d.space()
		v, ok := d.value(depth)
		if !ok {
			return nil, false
		}
		m[key] = v
		if last, ok := d.next('}'); last || !ok {
			return m, ok
		}
	}
	return nil, false
}

// maxExact is the number of digits up to which float64 represents every integer exactly.
const maxExact = 15

// number reads a number. Small integers are converted directly, all others by recurgent.Number.
func (d *decoder) number() (any, bool) {
	start := d.at
	negative := d.peek() == '-'
	if negative {
		d.at++
	}
	first, n := d.at, int64(0)
	for d.peek()-'0' <= 9 {
		n = n*10 + int64(d.peek()-'0') // an overflowed value is not used
		d.at++
	}
	digits := d.at - first
	if digits == 0 || digits > 1 && d.text[first] == '0' {
		return nil, false
	}
	if c := d.peek(); c != '.' && c != 'e' && c != 'E' && digits <= maxExact {
		f := float64(n)
		if negative {
			f = -f // also for zero
		}
		return f, true
	}
	if !d.fraction() {
		return nil, false
	}
	return recurgent.Number(d.text[start:d.at])
}

// fraction skips the fraction and the exponent of a number. It returns false if they are malformed.
func (d *decoder) fraction() bool {
	if d.peek() == '.' {
		d.at++
		if !d.digits() {
			return false
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		d.at++
		if c := d.peek(); c == '+' || c == '-' {
			d.at++
		}
		return d.digits()
	}
	return true
}

func (d *decoder) digits() bool {
	from := d.at
	for d.peek()-'0' <= 9 {
		d.at++
	}
	return d.at > from
}
