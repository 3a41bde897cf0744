package store

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// Limits of a Preview.
const (
	MaxPreview   = 80      // characters of the value; an ellipsis follows if it is longer
	PreviewBytes = 2 << 10 // bytes of an outcome that are enough for the preview of its value
)

// Preview returns the beginning of an outcome's value as compact JSON on one line, or "" if there is no value. outcome
// is in wire form and may be cut off after PreviewBytes.
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

// firstOf returns the preview of the value at the start of rest, which d reads next. A value that is cut off is not
// compacted.
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
