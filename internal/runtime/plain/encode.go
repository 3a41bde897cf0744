package plain

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Encode returns the output of a json.Encoder without HTML escapes, without its newline. It returns false if the value
// is not plain or cannot be encoded; the caller must then use encoding/json. It never calls a method of a value.
func Encode(v any) ([]byte, bool) {
	e := encoder{}
	ok := e.value(v, maxDepth)
	return e.out, ok
}

type encoder struct {
	out     []byte
	members []member // members of all open objects
}

type member struct {
	key   string
	value any
}

// value appends a value of one of the listed types. It rejects types that are merely based on them, because those may
// have methods.
func (e *encoder) value(v any, depth int) bool {
	switch v := v.(type) {
	case nil:
		e.out = append(e.out, "null"...)
	case bool:
		e.out = strconv.AppendBool(e.out, v)
	case string:
		return e.text(v)
	case float64:
		return e.float(v)
	case int:
		e.out = strconv.AppendInt(e.out, int64(v), 10)
	case int64:
		e.out = strconv.AppendInt(e.out, v, 10)
	case []any:
		return list(e, v, v == nil, depth, (*encoder).value)
	case []map[string]any:
		return list(e, v, v == nil, depth, (*encoder).object)
	case []string:
		return list(e, v, v == nil, depth, func(e *encoder, s string, _ int) bool { return e.text(s) })
	case []float64:
		return list(e, v, v == nil, depth, func(e *encoder, f float64, _ int) bool { return e.float(f) })
	case map[string]any:
		return e.object(v, depth)
	default:
		return false
	}
	return true
}

// sampled is the number of elements from whose length the length of a list's text is estimated.
const sampled = 64

// maxRoom bounds the space reserved for the rest of a list, in bytes.
const maxRoom = 2 << 20

// list appends a list of any element type by put. It returns false beyond the depth bound.
func list[T any](e *encoder, list []T, null bool, depth int, put func(*encoder, T, int) bool) bool {
	if null {
		e.out = append(e.out, "null"...)
		return true
	}
	if depth == 0 {
		return false
	}
	e.out = append(e.out, '[')
	from := len(e.out)
	for i := range list {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		// Reserve space for the rest and a little more, because each growth copies the output so far.
		if i == sampled {
			e.out = slices.Grow(e.out, min((len(e.out)-from)/sampled*5/4*(len(list)-sampled), maxRoom))
		}
		if !put(e, list[i], depth-1) {
			return false
		}
	}
	e.out = append(e.out, ']')
	return true
}

// object appends an object with sorted keys, as encoding/json does.
func (e *encoder) object(m map[string]any, depth int) bool {
	if m == nil {
		e.out = append(e.out, "null"...)
		return true
	}
	if depth == 0 {
		return false
	}
	from := len(e.members)
	for k, v := range m {
		e.members = append(e.members, member{k, v})
	}
	own := e.members[from:] // inner objects append after it
	slices.SortFunc(own, func(a, b member) int { return strings.Compare(a.key, b.key) })
	e.out = append(e.out, '{')
	for i := range own {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if !e.text(own[i].key) {
			return false
		}
		e.out = append(e.out, ':')
		if !e.value(own[i].value, depth-1) {
			return false
		}
	}
	e.out = append(e.out, '}')
	e.members = e.members[:from]
	return true
}

// copied marks the bytes that need no escape in a string. U+2028 and U+2029, which are escaped, begin with 0xE2.
var copied = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\' && c != 0xE2
	}
	return t
}()

// text appends a string. It returns false if the string is not UTF-8.
func (e *encoder) text(s string) bool {
	e.out = append(e.out, '"')
	start := 0
	ascii := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		ascii = ascii && c < utf8.RuneSelf
		if copied[c] || c == 0xE2 && !separator(s[i:]) {
			continue
		}
		e.out = append(e.out, s[start:i]...)
		switch {
		case c == 0xE2:
			e.out = append(e.out, '\\', 'u', '2', '0', '2', hex[s[i+2]&0xF])
			i += 2
		case c == '"' || c == '\\':
			e.out = append(e.out, '\\', c)
		case short[c] != 0:
			e.out = append(e.out, '\\', short[c])
		default:
			e.out = append(e.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
		start = i + 1
	}
	e.out = append(append(e.out, s[start:]...), '"')
	return ascii || utf8.ValidString(s)
}

const hex = "0123456789abcdef"

// short maps control characters to the letters of their short escapes.
var short = [' ']byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// separator reports whether s begins with U+2028 or U+2029, which JavaScript treats as line ends.
func separator(s string) bool {
	return len(s) >= 3 && s[1] == 0x80 && s[2]&^1 == 0xA8
}

// maxInteger bounds the integers that float64 represents exactly. Their shortest form is that of the integer.
const maxInteger = 1 << 53

// float appends a number in the format of encoding/json, which is that of JavaScript. It returns false for NaN and
// infinities.
func (e *encoder) float(f float64) bool {
	size := math.Abs(f)
	switch n := int64(f); {
	case size < maxInteger && float64(n) == f && (n != 0 || !math.Signbit(f)):
		e.out = strconv.AppendInt(e.out, n, 10)
	case size == 0 || 1e-6 <= size && size < 1e21:
		e.out = strconv.AppendFloat(e.out, f, 'f', -1, 64)
	case size <= math.MaxFloat64:
		e.out = strconv.AppendFloat(e.out, f, 'e', -1, 64)
		if n := len(e.out); e.out[n-2] == '0' && e.out[n-3] == '-' { // e-09 becomes e-9
			e.out[n-2] = e.out[n-1]
			e.out = e.out[:n-1]
		}
	default:
		return false
	}
	return true
}
