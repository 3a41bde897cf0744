package fetch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestShapes(t *testing.T) {
	shape := func(contentType, body string) string { return noteOf(contentType, body).Shape }
	same := [][3]string{
		{"application/json", `{"a":1,"b":["x"]}`, `{"b":["y","z"],"a":2}`},
		{"application/json", `[]`, ` [ ] `},
		{"text/html", `<html><body><p>a</p></body></html>`, `<html><body><p>b</p><p>c</p></body></html>`},
		{"application/rss+xml", `<rss><item/></rss>`, `<rss><item/><item/></rss>`},
		{"text/csv", "a,b\n1,2", "a,b\n3,4\n5,6"},
		{"text/plain", "one", "two"},
	}
	for _, c := range same {
		if shape(c[0], c[1]) != shape(c[0], c[2]) {
			t.Errorf("%s and %s have different shapes", c[1], c[2])
		}
	}
	different := [][2]string{{`{"a":1}`, `{"b":1}`}, {`{"a":1}`, `{"a":"1"}`}, {`{"a":1}`, `[{"a":1}]`},
		{`{"a":{"b":1}}`, `{"a":{"c":1}}`}, {`<rss/>`, `<html/>`}, {`{"a":1}`, `<html>error</html>`}, {`x`, ``}}
	for _, c := range different {
		if shape("", c[0]) == shape("", c[1]) {
			t.Errorf("%s and %s have one shape", c[0], c[1])
		}
	}
}

func noteOf(contentType, body string) *Note {
	n := &Note{ContentType: contentType}
	n.describeShape(body)
	return n
}

func FuzzShape(f *testing.F) {
	f.Add("text/html", "<a><b")
	f.Add("", `{"a":[{}]}`)
	f.Fuzz(func(t *testing.T, contentType, body string) {
		n := noteOf(contentType, body)
		if len(n.Shape) > 64 || len(n.Outline) > maxOutline || len(n.Form(nil)) > maxMarkupForm {
			t.Error("a long shape")
		}
		if !n.Keeps(n.Form(nil), n.Outline, nil) || !n.Keeps(n.Shape, n.Outline, nil) {
			t.Errorf("it does not keep its own shape %s, %s", n.Form(nil), n.Outline)
		}
	})
}

// The shape of JSON equals the one found by decoding, because stored shapes must stay valid.
func FuzzJSONShape(f *testing.F) {
	f.Add(`{"a":[{"b":"x\u00e9","b":1}],"c":{"d":{"e":{"f":{"g":1}}}}}`)
	f.Add(`[[[[[[1]]]]],{}]`)
	f.Add(` [ ] `)
	f.Add(`{"\"":true,"":null,"\ud800":-1.5e3}`)
	f.Fuzz(func(t *testing.T, text string) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var v any
		if !json.Valid([]byte(text)) || d.Decode(&v) != nil {
			return // text that is not JSON has no shape to compare
		}
		if got, want := jsonShape(text, 4), decodedShape(v, 4); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	})
}

// decodedShape returns the shape by its definition.
func decodedShape(v any, depth int) string {
	switch v := v.(type) {
	case map[string]any:
		if depth == 0 {
			return "{}"
		}
		out := "{"
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out += k + ":" + decodedShape(v[k], depth-1) + ","
		}
		return out + "}"
	case []any:
		if depth == 0 || len(v) == 0 {
			return "[]"
		}
		return "[" + decodedShape(v[0], depth-1) + "]"
	case string:
		return "s"
	case json.Number:
		return "n"
	case bool:
		return "b"
	}
	return "0"
}

// A body of many keys costs no more than its bound.
func TestShapeOfManyKeys(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"first":{`)
	for i := range maxShapeKeys + 10 {
		fmt.Fprintf(&b, `"%d":{},`, i)
	}
	b.WriteString(`"last":1},"after":[1]}`)
	if got := jsonShape(b.String(), 4); strings.Contains(got, "last") || strings.Contains(got, "after") ||
		!strings.Contains(got, "9:{},") {
		t.Errorf("a shape of %d bytes, want one without the keys behind the first %d", len(got), maxShapeKeys)
	}
}
