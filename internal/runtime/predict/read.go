package predict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
)

// Read reads a reply as a JSON object, bare or in a fence, or as "Field: value" lines; names in any letter case. It
// returns every output as compact JSON of its type, or the reason why the reply does not fit.
func Read(s contract.Signature, reply string) (outputs map[string]json.RawMessage, reason string) {
	reply = strings.TrimSpace(reply)
	if reply == "" {
		return nil, "it is empty"
	}
	if values, ok := readJSON(s, reply); ok {
		return fit(s, values, false)
	}
	return fit(s, readLines(s, reply), true)
}

func readJSON(s contract.Signature, reply string) (map[string]json.RawMessage, bool) {
	text := reply
	if strings.HasPrefix(text, "```") {
		_, text, _ = strings.Cut(text, "\n")
		text, _, _ = strings.Cut(text, "\n```")
		text = strings.TrimSpace(text)
	}
	var all map[string]json.RawMessage
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &all) != nil {
		return nil, false
	}
	values := map[string]json.RawMessage{}
	for _, f := range s.Outputs {
		for _, k := range slices.Sorted(maps.Keys(all)) {
			if _, exact := values[f.Name]; k == f.Name || !exact && strings.EqualFold(k, f.Name) {
				values[f.Name] = all[k]
			}
		}
	}
	return values, true
}

// readLines takes what follows a field's label, up to the next label, as the field's text.
func readLines(s contract.Signature, reply string) map[string]json.RawMessage {
	texts := map[string]*strings.Builder{}
	var current *strings.Builder
	for line := range strings.Lines(reply) {
		if f, rest, ok := label(s, line); ok && texts[f.Name] == nil {
			current = &strings.Builder{}
			texts[f.Name] = current
			current.WriteString(rest)
			continue
		}
		if current != nil {
			current.WriteString(line)
		}
	}
	values := map[string]json.RawMessage{}
	for name, b := range texts {
		raw, _ := json.Marshal(strings.TrimSpace(b.String())) // a string always encodes
		values[name] = raw
	}
	return values
}

// label finds the field that a line begins: "Answer: ...", in any letter case, also in bold.
func label(s contract.Signature, line string) (contract.Field, string, bool) {
	name, rest, ok := strings.Cut(line, ":")
	if !ok {
		return contract.Field{}, "", false
	}
	name = strings.TrimSpace(strings.Trim(strings.TrimSpace(name), "*#"))
	for _, f := range s.Outputs {
		if strings.EqualFold(name, f.Name) || name == history.Label(f.Name) {
			return f, strings.TrimPrefix(strings.TrimLeft(rest, " \t"), "** "), true
		}
	}
	return contract.Field{}, "", false
}

// fit checks every output against its type. text says that all values are texts, to be read by type.
func fit(s contract.Signature, values map[string]json.RawMessage, text bool) (map[string]json.RawMessage, string) {
	out := make(map[string]json.RawMessage, len(s.Outputs))
	var missing []string
	for _, f := range s.Outputs {
		v, ok := values[f.Name]
		if !ok {
			missing = append(missing, history.Label(f.Name))
			continue
		}
		if text {
			v = fromText(f, v)
		}
		compact, reason := typed(f, v)
		if reason != "" {
			return nil, history.Label(f.Name) + " " + reason
		}
		out[f.Name] = compact
	}
	if len(missing) > 0 {
		return nil, "it lacks " + strings.Join(missing, ", ")
	}
	return out, ""
}

// fromText gives the text of a line the form of its field's type: JSON where it is not a string.
func fromText(f contract.Field, quoted json.RawMessage) json.RawMessage {
	if f.Type == contract.TypeString {
		return quoted
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return quoted
	}
	if strings.HasPrefix(text, "```") {
		_, text, _ = strings.Cut(text, "\n")
		text, _, _ = strings.Cut(text, "```")
		text = strings.TrimSpace(text)
	}
	if f.Type == contract.TypeBoolean {
		text = strings.ToLower(text)
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return quoted
}

// typed returns the value as compact JSON, or why it is not of the field's type or breaks the field's schema.
func typed(f contract.Field, v json.RawMessage) (json.RawMessage, string) {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return nil, "is not JSON"
	}
	compact := json.RawMessage(b.Bytes())
	kind := agent.Kind(compact)
	switch f.Type {
	case contract.TypeAny, kind:
	case contract.TypeInteger:
		n, ok := whole(compact)
		if kind != "number" || !ok {
			return nil, wrongType(f, kind)
		}
		compact = n
	default:
		return nil, wrongType(f, kind)
	}
	if broken := f.Check(compact); broken != nil {
		return nil, "breaks its schema: " + broken.Message
	}
	return compact, ""
}

func wrongType(f contract.Field, kind string) string {
	return fmt.Sprintf("must be of type %s, got %s", f.Type, kind)
}

// whole returns a number without its fraction when that is nothing: 3.0 is 3. Digits are exact.
func whole(n json.RawMessage) (json.RawMessage, bool) {
	text := string(n)
	if !strings.ContainsAny(text, ".eE") {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -1<<53 {
		return nil, false
	}
	return json.RawMessage(strconv.FormatInt(int64(f), 10)), true
}
