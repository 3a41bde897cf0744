package catalog

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// inWords lists keywords that not every client supports, and the words that describe them.
var inWords = []struct{ name, of, words string }{
	{"default", "", "Default: "}, {"format", "string", "Format: "}, {"pattern", "string", "Pattern: "},
	{"minLength", "string", "Characters at least: "}, {"maxLength", "string", "Characters at most: "},
	{"exclusiveMinimum", "number", "More than: "}, {"exclusiveMaximum", "number", "Less than: "},
	{"multipleOf", "number", "A multiple of: "}}

// describe returns the description of a schema of that type, extended by the keywords that shapes do not have.
func (r *schemaReader) describe(m keywords, kind string) string {
	var said []string
	for _, k := range inWords {
		if raw, there := m[k.name]; there && (k.of == "" || k.of == kind || k.of == "number" && kind == "integer") &&
			string(raw) != "null" {
			value := string(raw)
			if t, ok := textOf(raw); ok && k.of != "" {
				value = t
			}
			said = append(said, k.words+agent.OneLine(value, 60)+".")
		}
	}
	if values := elements(m["enum"]); len(values) > 0 && (kind != "string" ||
		slices.ContainsFunc(values, func(v json.RawMessage) bool { return string(v) == `""` })) {
		said = append(said, "One of: "+agent.OneLine(string(m["enum"]), 100)+".")
	} else if only, is := m["const"]; is && kind != "string" {
		said = append(said, "Always: "+agent.OneLine(string(only), 60)+".")
	}
	if of, ok := typesOf(keywordsOf(m["additionalProperties"])["type"]); ok && len(of) > 0 && kind == "object" {
		said = append(said, "Each member: "+strings.Join(of, " or ")+".")
	}
	words := agent.OneLine(strings.Join(said, " "), maxSaid)
	says, ok := textOf(m["description"])
	if !ok || says == "" {
		says, ok = textOf(m["title"])
	}
	if !ok || says == "" {
		return words
	}
	r.texts = true
	if says = agent.OneLine(says, maxText-len([]rune(words))-2); words == "" || says == "" {
		return says + words
	}
	if !strings.HasSuffix(says, ".") {
		says += "."
	}
	return says + " " + words
}
