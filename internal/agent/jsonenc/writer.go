// Package jsonenc appends values as JSON, byte for byte as encoding/json writes them, at a fraction of its cost. Every
// call is encoded several times: for its reply, the journal, the history and the call log.
//
// Embedded JSON (json.RawMessage) is checked in one pass and copied if it is already compact and escaped, which it
// nearly always is. A Writer remembers the last values that it checked and does not check them again. Encoding takes
// time linear in the output, except for the keys of maps, which are sorted.
package jsonenc

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// A Writer appends JSON to Buf. The first error stays in Err; Buf is invalid after it. A Writer is not safe for
// concurrent use. The zero value is ready to use.
type Writer struct {
	Buf []byte
	Err error

	// KeepHTML leaves <, > and & in json.RawMessage unescaped. By default they are escaped, as encoding/json does.
	KeepHTML bool

	checked [8]note // a ring of values known to be clean
	next    int     // counts the values noted; modulo the ring's size, the next slot
}

// A note identifies bytes by address and length. They must not change while the Writer is in use.
type note struct {
	at     *byte
	length int
	html   bool // checked with KeepHTML
}

// worthNoting is the minimum size of values noted as checked. Checking a smaller value again costs no more than finding
// its note.
const worthNoting = 256

// Key begins a member of the object that is being written. name must not need escapes.
func (w *Writer) Key(name string) {
	if n := len(w.Buf); n > 0 && w.Buf[n-1] != '{' {
		w.Buf = append(w.Buf, ',')
	}
	w.Buf = append(w.Buf, '"')
	w.Buf = append(w.Buf, name...)
	w.Buf = append(w.Buf, '"', ':')
}

// String appends a member with a string.
func (w *Writer) String(name, v string) {
	w.Key(name)
	w.Buf = appendString(w.Buf, v)
}

// Int appends a member with an integer.
func (w *Writer) Int(name string, v int64) {
	w.Key(name)
	w.Buf = strconv.AppendInt(w.Buf, v, 10)
}

// Bool appends a member with a boolean.
func (w *Writer) Bool(name string, v bool) {
	w.Key(name)
	w.Buf = strconv.AppendBool(w.Buf, v)
}

// Raw appends a member with JSON of unknown origin; see JSON.
func (w *Writer) Raw(name string, v json.RawMessage) {
	w.Key(name)
	w.JSON(v)
}

// Ints appends a member with a list of integers.
func (w *Writer) Ints(name string, v []int64) {
	w.Key(name)
	w.Buf = append(w.Buf, '[')
	for i, n := range v {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = strconv.AppendInt(w.Buf, n, 10)
	}
	w.Buf = append(w.Buf, ']')
}

// Value appends a member with any value, as encoding/json does.
func (w *Writer) Value(name string, v any) {
	w.Key(name)
	w.marshal(v)
}

func (w *Writer) marshal(v any) {
	text, err := json.Marshal(v)
	w.Err = errors.Join(w.Err, err)
	w.Buf = append(w.Buf, text...)
}

// Verbatim appends a member with JSON that this package has written. It is not checked.
func (w *Writer) Verbatim(name string, v []byte) {
	w.Key(name)
	w.Buf = append(w.Buf, v...)
}

// JSON appends JSON of unknown origin, or null if v is empty. Anything but one JSON value is an error.
func (w *Writer) JSON(v json.RawMessage) {
	if len(v) == 0 {
		w.Buf = append(w.Buf, "null"...)
		return
	}
	// The same value is often written several times, for example to the reply and to the log.
	if len(v) >= worthNoting && w.known(v) {
		w.Buf = append(w.Buf, v...)
		return
	}
	if !clean(v, w.KeepHTML) {
		w.rewrite(v)
		return
	}
	if len(v) >= worthNoting {
		w.checked[w.next%len(w.checked)] = note{unsafe.SliceData(v), len(v), w.KeepHTML}
		w.next++
	}
	w.Buf = append(w.Buf, v...)
}

// known reports whether these bytes are noted as clean for the current KeepHTML.
func (w *Writer) known(v []byte) bool {
	for i := range w.checked {
		if n := &w.checked[i]; n.at == unsafe.SliceData(v) && n.length == len(v) && (w.KeepHTML || !n.html) {
			return true
		}
	}
	return false
}

// rewrite appends JSON that is not clean: it removes insignificant white space and, unless KeepHTML is set, escapes.
func (w *Writer) rewrite(v json.RawMessage) {
	if !w.KeepHTML && clean(v, true) {
		w.Buf = appendEscaped(w.Buf, v)
		return
	}
	if !w.KeepHTML {
		w.marshal(v)
		return
	}
	out := bytes.NewBuffer(w.Buf)
	if err := json.Compact(out, v); err != nil {
		w.Err = errors.Join(w.Err, err)
		return
	}
	w.Buf = out.Bytes()
}

// plain marks the bytes that appendString copies: ASCII that needs no escape.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return t
}()

// appendString appends s as a JSON string. The common case, plain ASCII, is a copy.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !plain[s[i]] {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("a string that cannot be JSON: " + err.Error()) // encoding/json replaces invalid UTF-8
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// float appends a number. It leaves very large and very small numbers, and NaN and infinities, to encoding/json.
func (w *Writer) float(f float64) {
	// encoding/json uses an exponent outside this range.
	if size := math.Abs(f); f != 0 && !(1e-6 <= size && size < 1e21) {
		w.marshal(f)
		return
	}
	w.Buf = strconv.AppendFloat(w.Buf, f, 'f', -1, 64)
}
