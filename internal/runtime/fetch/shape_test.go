package fetch

import "testing"

func TestShapes(t *testing.T) {
	shape := func(contentType, body string) string { return shapeOf(contentType, body) }
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
	different := [][2]string{{`{"a":1}`, `{"b":1}`}, {`{"a":1}`, `{"a":"1"}`}, {`{"a":1}`, `[{"a":1}]`}, {`{"a":{"b":1}}`, `{"a":{"c":1}}`}, {`<rss/>`, `<html/>`}, {`{"a":1}`, `<html>error</html>`}, {`x`, ``}}
	for _, c := range different {
		if shape("", c[0]) == shape("", c[1]) {
			t.Errorf("%s and %s have one shape", c[0], c[1])
		}
	}
}

func FuzzShape(f *testing.F) {
	f.Add("text/html", "<a><b")
	f.Add("", `{"a":[{}]}`)
	f.Fuzz(func(t *testing.T, contentType, body string) {
		if len(shapeOf(contentType, body)) > 64 {
			t.Error("a long shape")
		}
	})
}
