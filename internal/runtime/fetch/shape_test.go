package fetch

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
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

// TestKeeps covers changes of a source that keep its shape, and changes that do not.
func TestKeeps(t *testing.T) {
	t.Parallel()
	const page = `<html><body><h1 id="top">News</h1><nav><a>x</a><a>y</a></nav><ul id="hits"><li class="hit new"><b>a</b></li><li class="hit"><b>b</b></li></ul><p class="temp">8</p></body></html>`
	const cards = `<html><div class="list"><div class="card"><b>a</b></div><div class="card"><b>b</b></div><div class="card"><b>c</b></div></div><div>foot</div></html>`
	const feed = `<rss><channel><title>f</title><item><title>a</title><pubDate>1</pubDate></item></channel></rss>`
	words := map[string]bool{}
	for w := range strings.FieldsSeq("h1 li hit temp hits card item title pubdate b") {
		words[w] = true
	}
	tests := []struct {
		name, was, now string
		want           bool
	}{
		{"an empty list", `{"items":[{"a":1}],"n":1}`, `{"items":[],"n":0}`, true},
		{"null for a list", `{"items":[{"a":1}],"n":1}`, `{"items":null,"n":0}`, true},
		{"null for a list, and why", `{"items":[{"a":1}]}`, `{"items":null,"note":"closed"}`, true},
		{"no list at all", `{"items":[{"a":1}],"n":1}`, `{"n":0}`, true},
		{"a list after an empty one", `{"items":[]}`, `{"items":[{"a":1}]}`, true},
		{"a list after null", `{"items":null}`, `{"items":["x"]}`, true},
		{"the list is empty", `[{"a":1}]`, `[]`, true},
		{"the answer is null", `[{"a":1}]`, `null`, true},
		{"nothing came", `{"a":1}`, ``, true},
		{"null for a value", `{"a":"x","b":1}`, `{"a":null,"b":1}`, true},
		{"one more key", `{"a":1}`, `{"a":1,"b":2}`, true},
		{"an inner list is empty", `{"d":{"items":[[1]]}}`, `{"d":{"items":[[]]}}`, true},
		{"the list has another name", `{"items":[{"a":1}]}`, `{"results":[{"a":1}]}`, false},
		{"the value has another name", `{"a":1}`, `{"a":null,"b":1}`, false},
		{"a key is gone", `{"a":1,"b":1}`, `{"a":1}`, false},
		{"another kind", `{"a":1}`, `{"a":"1"}`, false},
		{"elements of another shape", `[{"a":1}]`, `[{"b":1}]`, false},
		{"an object in the place of a list", `{"a":[1]}`, `{"a":{}}`, false},
		{"a page in the place of JSON", `{"a":[1]}`, page, false},

		{"the same page", page, page, true},
		{"an empty page list", page,
			`<html><body><h1>News</h1><nav><a>x</a></nav><ul id="hits"></ul><p class="temp">9</p></body></html>`, true},
		{"a notice in the place of the list", page,
			`<html><body><h1>News</h1><div id="hits"><p class="none"><i>Nothing</i></p></div><p class="temp">9</p></body></html>`, true},
		{"one of the list", page,
			`<html><body><h1>News</h1><ul id="hits"><li class="hit"><b>a</b></li></ul><p class="temp">9</p></body></html>`, true},
		{"names that the program does not know", page, strings.NewReplacer("nav", "menu", "top", "head", " new",
			"").Replace(page), true},
		{"a class has another name", page, strings.ReplaceAll(page, "temp", "t2"), false},
		{"an id has another name", page, strings.ReplaceAll(page, "hits", "found"), false},
		{"the list's class has another name", page, strings.NewReplacer(`"hit `, `"result `, `"hit"`,
			`"result"`).Replace(page), false},
		{"the list's elements have another name", page, strings.ReplaceAll(page, "li", "article"), false},
		{"an element has another name", page, strings.ReplaceAll(page, "h1", "h2"), false},
		{"no cards", cards, `<html><div class="list"><div class="none">Nothing</div></div><div>foot</div></html>`,
			true},
		{"cards of another name", cards, strings.ReplaceAll(cards, "card", "tile"), false},
		{"an empty feed", feed, `<rss><channel><title>f</title></channel></rss>`, true},
		{"a feed of another kind", feed, strings.ReplaceAll(feed, "item", "entry"), false},
		{"CSV without rows", "a,b\n1,2", "a,b\n", true},
		{"CSV of other columns", "a,b\n1,2", "a,c\n1,2", false},
		{"other text", "one", "two", true},
	}
	for _, tt := range tests {
		contentType := ""
		if strings.HasPrefix(tt.name, "CSV") {
			contentType = "text/csv"
		}
		was, now := noteOf(contentType, tt.was), noteOf(contentType, tt.now)
		if got := now.Keeps(was.Form(words), was.Outline, words); got != tt.want {
			t.Errorf("%s: kept is %v\n%s\n%s", tt.name, got, was.Form(words), now.Form(words))
		}
	}
}

// An earlier version stored a fingerprint, and an outline that may have been cut.
func TestKeepsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	words := map[string]bool{"hit": true, "h1": true}
	long := strings.Repeat(`"key_of_a_value":1,`, 40)
	for i := range 40 {
		long = strings.Replace(long, "key_of_a_value", fmt.Sprintf("k%02d_of_a_long_name", i), 1)
	}
	for _, tt := range []struct {
		name, shape, outline, body string
		want                       bool
	}{
		{"the same JSON", noteOf("", `{"a":[1]}`).Shape, "", `{"a":[2]}`, true},
		{"an empty list", "json:0123456789abcdef", "{items:[{a:n,}],}", `{"items":[]}`, true},
		{"another key", "json:0123456789abcdef", "{items:[{a:n,}],}", `{"found":[]}`, false},
		{"without an outline", "json:0123456789abcdef", "", `{"items":[]}`, false},
		{"cut, the same", "json:0123456789abcdef", noteOf("", "{"+long+`"z":[1]}`).Outline, "{" + long + `"z":[]}`,
			true},
		{"cut, another", "json:0123456789abcdef", noteOf("", "{"+long+`"z":[1]}`).Outline,
			"{" + strings.Replace(long, "k00", "j00", 1) + `"z":[]}`, false},
		{"a page", "html:0123456789abcdef", "elements body h1 html; classes hit", `<html><h1 class="hit"></html>`,
			true},
		{"another class", "html:0123456789abcdef", "elements body h1 html; classes hit", `<html><h1 class="x"></html>`,
			false},
		{"another element", "html:0123456789abcdef", "elements body h1 html; classes hit",
			`<html><h2 class="hit"></html>`, false},
		{"names that do not count", "html:0123456789abcdef", "elements body h1 html p; classes hit other",
			`<html><h1 class="hit"></html>`, true},
		{"an unknown one", "rss", "", `<rss/>`, false},
	} {
		if got := noteOf("", tt.body).Keeps(tt.shape, tt.outline, words); got != tt.want {
			t.Errorf("%s: kept is %v", tt.name, got)
		}
	}
}

// Emptying or extending any list keeps the shape. Renaming any key does not.
func TestKeepsWhateverIsEmpty(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		was, empty, renamed := anyJSON(r, 3)
		w, e, n := noteOf("", was), noteOf("", empty), noteOf("", renamed)
		if !e.Keeps(w.Form(nil), w.Outline, nil) || !w.Keeps(e.Form(nil), e.Outline, nil) {
			t.Errorf("%s is another shape than %s", empty, was)
		}
		if n.Keeps(w.Form(nil), w.Outline, nil) {
			t.Errorf("%s has the shape of %s", renamed, was)
		}
	}
}

// anyJSON returns an object with lists, the same with some of them empty or null, and one whose keys are renamed.
func anyJSON(r *rand.Rand, depth int) (was, empty, renamed string) {
	var all [3][]string
	for i := range 1 + r.IntN(3) {
		value, less, other := "1", "2", "3"
		switch k := r.IntN(4); {
		case k > 1 && depth > 1:
			inner, without, named := anyJSON(r, depth-1)
			value, less, other = inner, without, named
			if k == 3 {
				value, less, other = "["+value+"]", []string{"[]", "null", "[" + less + "]",
					"[" + value + "," + less + "]"}[r.IntN(4)], "["+other+"]"
			}
		case k == 1:
			value, less, other = `"x"`, `""`, `"y"`
		}
		all[0] = append(all[0], fmt.Sprintf(`"k%d":%s`, i, value))
		all[1] = append(all[1], fmt.Sprintf(`"k%d":%s`, i, less))
		all[2] = append(all[2], fmt.Sprintf(`"r%d":%s`, i, other))
	}
	return "{" + strings.Join(all[0], ",") + "}", "{" + strings.Join(all[1], ",") + "}",
		"{" + strings.Join(all[2], ",") + "}"
}

// Markup of any quality is scanned once, and quoted or unclosed parts do not mislead the scan.
func TestTallyMarkup(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`<P CLASS='a  b' id=x>`:                  " p p#x p.a p.b",
		`<a href="<b>" class=c><b/>`:             " a b a.c",
		`<!-- <p> --><script>"<i>"</script><u>`:  " script u",
		`<ul><li class="a"><b></b></li></ul><b>`: " b*2 li*1 ul li.a*1",
		`<p><p>`:                                 " p*2",
		`<a class="x`:                            " a a.x",
		`<!-- <p>`:                               "",
		`<style><p>`:                             " style",
		`a < b, <1>, <>, </>, <a`:                "",
		`<br/ / =x class = "q">`:                 " br br.q",
		`<rss><item><title/></item><item/></rss><dc:date x>`: " dc:date item*2 rss title*1",
	} {
		words := map[string]bool{"a": true, "b": true, "c": true, "x": true, "q": true}
		if got := tallyMarkup(text).form(words); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	var many strings.Builder
	for i := range maxTallies + 10 {
		fmt.Fprintf(&many, `<e%d class="c%d">`, i, i)
	}
	if got := tallyMarkup(many.String()); len(got) != maxTallies ||
		len(got.form(map[string]bool{"c1": true})) > maxMarkupForm {
		t.Errorf("%d names", len(got))
	}
}
