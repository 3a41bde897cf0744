package rawjson

import (
	"bytes"
	"strconv"
	"strings"
)

// WithoutHTML returns a JSON document with the characters themselves in the place of the escapes that are for web pages: \u003c, \u003e and \u0026.
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
		out, i = append(out, data[i], data[i+1]), i+1 // an escaped backslash begins no escape
	}
	return out
}
