package prompt

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/lazy"
)

// plain makes text of strangers one bounded line that cannot spell a tag.
func plain(text string, most int) string {
	return visible(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "), most)
}

// elements matches a < that opens or closes an element of ours, or one of the marks that separate the parts of a conversation for a model.
var elements = lazy.Regexp(`(?i)<(\s*/?\s*(?:` + strings.Join(elementNames(), "|") + `|system|user|assistant)\b|\||$)`)

// elementNames are the names of the elements of the user message.
func elementNames() []string {
	var names []string
	for _, m := range regexp.MustCompile(`<([a-z_]+)>`).FindAllStringSubmatch(userText, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// visible is plain for text whose white space counts. Characters that nobody sees, such as those that turn the direction
// of writing, are left out, and a < that could forge an element is an entity; other markup and comparisons stay.
func visible(text string, most int) string {
	return elements().ReplaceAllString(seen(text, most), "&lt;$1")
}

// seen bounds a text and leaves out the characters that nobody sees.
func seen(text string, most int) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.Is(unicode.Cf, r) || unicode.IsControl(r)) {
			return -1
		}
		return r
	}, cut(strings.ToValidUTF8(text, "?"), most))
}

// data is text of data from outside: no < of it opens anything.
func data(text string, most int) string {
	return strings.ReplaceAll(seen(text, most), "<", "&lt;")
}

// verbatim is text that test servers and the replay provider read back: every character stays, as an entity where it must.
func verbatim(text string, most int) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">",
		"&gt;").Replace(cut(strings.ToValidUTF8(text, "?"), most))
}

// encoded renders data as JSON with <, > and & escaped, and cuts what is too long.
func encoded(v any, most int) string {
	text, _ := preview(v, most, `"..."`)
	return text
}

// readable is encoded for what people and programs wrote for a model to read, such as contracts: <, > and & stay as they are, but where they
// could forge an element.
func readable(v any, most int) string {
	text := string(rawjson.WithoutHTML([]byte(encoded(v, most))))
	return elements().ReplaceAllString(text, `\u003c$1`)
}

// preview renders v as JSON of about most bytes: where it would be longer, long strings and lists are shortened, and
// what is left is still JSON. fallback stands for what cannot be encoded.
func preview(v any, most int, fallback string) (text string, shortened bool) {
	b, err := json.Marshal(v)
	if err != nil {
		return fallback, true
	}
	if len(b) <= most {
		return string(b), false
	}
	decoded, err := contract.Decode(b)
	if err != nil {
		return fallback, true
	}
	for room := most / 4; room >= 16; room /= 2 {
		s := &shortener{text: room, items: max(room/16, 3), nodes: most / 8}
		if b, err = json.Marshal(s.value(decoded, 0)); err == nil && len(b) <= most {
			return string(b), true
		}
	}
	return fallback, true
}

// shortener copies a decoded value with its long parts shortened.
type shortener struct {
	text  int // bytes of a string
	items int // elements of a list, members of an object
	nodes int // values that may still be copied
}

func (s *shortener) value(v any, depth int) any {
	if s.nodes--; s.nodes < 0 || depth > 32 {
		return "..."
	}
	switch v := v.(type) {
	case string:
		if len(v) > s.text {
			return cut(v, s.text)
		}
	case json.Number:
		if len(v) > s.text {
			return cut(string(v), s.text)
		}
	case []any:
		out := make([]any, 0, min(len(v), s.items+1))
		for _, e := range v[:min(len(v), s.items)] {
			out = append(out, s.value(e, depth+1))
		}
		if more := len(v) - len(out); more > 0 {
			out = append(out, fmt.Sprintf("... %d more", more))
		}
		return out
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		out := make(map[string]any, min(len(v), s.items+1))
		for _, k := range keys[:min(len(keys), s.items)] {
			out[cut(k, s.text)] = s.value(v[k], depth+1)
		}
		if more := len(keys) - s.items; more > 0 {
			out["..."] = fmt.Sprintf("%d more", more)
		}
		return out
	}
	return v
}

// cut shortens text to about n bytes, at a character's edge, and says by how much.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes more)", strings.ToValidUTF8(text[:n], ""), len(text)-n)
}
