package store

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// Bounds of a Preview.
const (
	MaxPreview   = 80      // characters of a value, to which an ellipsis is added where it goes on
	PreviewBytes = 2 << 10 // of an outcome, in which the beginning of its value stands whole
)

// Preview returns the beginning of the value of an outcome, as compact JSON on one line. outcome is its wire form, or at least the first
// PreviewBytes of that. "" where it has no value.
func Preview(outcome []byte) string {
	outcome = outcome[:min(len(outcome), PreviewBytes)]
	d := json.NewDecoder(bytes.NewReader(outcome))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		if name == "value" {
			return firstOf(bytes.TrimLeft(outcome[d.InputOffset():], ": "), d)
		}
		var other json.RawMessage
		if d.Decode(&other) != nil {
			return ""
		}
	}
	return ""
}

// firstOf cuts the value that rest begins with, which d is about to read.
func firstOf(rest []byte, d *json.Decoder) string {
	var whole json.RawMessage
	if d.Decode(&whole) == nil {
		rest = whole
	}
	var b bytes.Buffer
	if whole != nil && json.Compact(&b, whole) == nil {
		rest = b.Bytes()
	}
	text := rawjson.WithoutHTML(rest)
	at, n := 0, 0
	for ; at < len(text) && n < MaxPreview; n++ {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	if at < len(text) || whole == nil {
		return string(text[:at]) + "…"
	}
	return string(text)
}
