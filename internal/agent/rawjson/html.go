package rawjson

import (
	"bytes"
	"strconv"
	"strings"
)

// WithoutHTML returns a JSON document with the escapes \u003c, \u003e and \u0026, which matter only in web pages,
// replaced by the characters themselves.
func WithoutHTML(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u00`)) {
		return data
	}
	const length = len(`\u003c`)
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 == len(data) {
			out = append(out, data[i])
			continue
		}
		if i+length <= len(data) {
			switch strings.ToLower(string(data[i : i+length])) {
			case `\u003c`, `\u003e`, `\u0026`:
				code, _ := strconv.ParseUint(string(data[i+2:i+length]), 16, 8)
				out, i = append(out, byte(code)), i+length-1
				continue
			}
		}
		out, i = append(out, data[i], data[i+1]), i+1 // the second of two backslashes does not begin an escape
	}
	return out
}
