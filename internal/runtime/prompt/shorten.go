package prompt

import (
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

// plain turns untrusted text into one bounded line that cannot contain a tag.
func plain(text string, most int) string {
	return visible(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "), most)
}

// elements matches a < that opens or closes an element of the prompt, or a mark that separates the parts of a
// conversation for a model.
var elements = lazy.Regexp(`(?i)<(\s*/?\s*(?:` + strings.Join(elementNames(), "|") + `|system|user|assistant)\b|\||$)`)

// elementNames returns the names of the elements in the user message.
func elementNames() []string {
	var names []string
	for _, m := range regexp.MustCompile(`<([a-z_]+)>`).FindAllStringSubmatch(userText, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// visible is plain for text in which white space matters. Invisible characters, such as those that change the writing
// direction, are removed, and a < that could forge an element becomes an entity. Other markup and comparisons stay.
func visible(text string, most int) string {
	return elements().ReplaceAllString(seen(text, most), "&lt;$1")
}

// seen bounds a text and removes invisible characters.
func seen(text string, most int) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.Is(unicode.Cf, r) || unicode.IsControl(r)) {
			return -1
		}
		return r
	}, cut(strings.ToValidUTF8(text, "?"), most))
}

// data prepares external data: every < becomes an entity.
func data(text string, most int) string {
	return strings.ReplaceAll(seen(text, most), "<", "&lt;")
}

// verbatim prepares text that test servers and the replay provider read back. Every character is kept, if necessary as
// an entity.
func verbatim(text string, most int) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">",
		"&gt;").Replace(cut(strings.ToValidUTF8(text, "?"), most))
}

// encoded renders v as JSON with <, > and & escaped, and shortens long values.
func encoded(v any, most int) string {
	text, _ := preview(v, most, `"..."`)
	return text
}

// readable is encoded for text that people and programs wrote for a model to read, such as contracts. <, > and & stay
// unless they could forge an element.
func readable(v any, most int) string {
	text := string(rawjson.WithoutHTML([]byte(encoded(v, most))))
	return elements().ReplaceAllString(text, `\u003c$1`)
}

// preview renders v as JSON of at most most bytes. It shortens long strings and lists if necessary; the result is still
// JSON. fallback is returned if v cannot be encoded or shortened enough.
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
	text  int // bytes per string
	items int // elements per list, members per object
	nodes int // values that may still be copied
}

// value copies v. Values beyond the bounds become "..." or a count of what is left out.
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

// cut shortens text to about n bytes, at a character boundary, and appends how much was cut.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes more)", strings.ToValidUTF8(text[:n], ""), len(text)-n)
}
