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
	"github.com/recurgentd/recurgentd/internal/lazy"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// Read parses a reply: a JSON object anywhere in it, or lines "Field: value". Names match in any letter case. It
// returns every output as compact JSON of its type, or the reason why the reply does not fit.
func Read(s contract.Signature, text string) (outputs map[string]json.RawMessage, reason string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, "it is empty"
	}
	lines := readLines(s, text)
	if len(lines) == len(s.Outputs) && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "```") {
		return fit(s, lines, true)
	}
	values := readJSON(s, text)
	if len(values) > 0 && (len(values) == len(s.Outputs) || len(lines) == 0) {
		return fit(s, values, false)
	}
	return fit(s, lines, true)
}

// names reports whether a reply mentions any output of the signature.
func names(s contract.Signature, text string) bool {
	return len(readLines(s, text)) > 0 || len(readJSON(s, text)) > 0
}

// readJSON returns the outputs in the object that has most of them; of several, the last.
func readJSON(s contract.Signature, text string) map[string]json.RawMessage {
	var best map[string]json.RawMessage
	for _, all := range reply.Objects(text) {
		values := map[string]json.RawMessage{}
		for _, f := range s.Outputs {
			for _, k := range slices.Sorted(maps.Keys(all)) {
				if _, exact := values[f.Name]; k == f.Name || !exact && strings.EqualFold(k, f.Name) {
					values[f.Name] = all[k]
				}
			}
		}
		if len(values) >= len(best) {
			best = values
		}
	}
	return best
}

// readLines returns the text after each field's label, up to the next label. If not all labels are found at the
// beginnings of lines, labels in lists also count.
func readLines(s contract.Signature, text string) map[string]json.RawMessage {
	strict := labelled(s, text, "*#")
	if len(strict) == len(s.Outputs) {
		return strict
	}
	if loose := labelled(s, text, "*#_`->•0123456789. \t"); len(loose) > len(strict) {
		return loose
	}
	return strict
}

// labelled splits a reply at the labels of output fields. around are the characters that may surround a label. Text
// before the first label is dropped; of repeated labels the first counts.
func labelled(s contract.Signature, text, around string) map[string]json.RawMessage {
	texts := map[string]*strings.Builder{}
	var current *strings.Builder
	for line := range strings.Lines(text) {
		if f, rest, ok := label(s, line, around); ok && texts[f.Name] == nil {
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
		values[name] = quote(strings.TrimSpace(b.String()))
	}
	return values
}

// quote returns a text as a JSON string.
func quote(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a string always encodes
	return raw
}

// colons matches the colon after a label, ASCII or full-width (Chinese and Japanese).
var colons = lazy.Regexp(`:|：`)

// label returns the field whose label begins the line: "Answer: ...", in any letter case, possibly in bold or within
// other marks.
func label(s contract.Signature, line, around string) (contract.Field, string, bool) {
	colon := colons().FindStringIndex(line)
	if colon == nil {
		return contract.Field{}, "", false
	}
	name, rest := line[:colon[0]], line[colon[1]:]
	name = strings.TrimSpace(strings.Trim(strings.TrimSpace(name), around))
	for _, f := range s.Outputs {
		if strings.EqualFold(name, f.Name) || name == history.Label(f.Name) {
			return f, strings.TrimPrefix(strings.TrimLeft(rest, " \t"), "** "), true
		}
	}
	return contract.Field{}, "", false
}

// fit checks every output against its type. text means that all values are strings, to be parsed by type.
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

// fromText converts the text of a line to the field's type. It is parsed as JSON unless the field is a string.
func fromText(f contract.Field, quoted json.RawMessage) json.RawMessage {
	if f.Type == contract.TypeString {
		return quoted
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return quoted
	}
	if raw, ok := reply.Value(strings.Trim(reply.Fenced(text), "*` \n\t")); ok {
		return raw
	}
	return quoted
}

// typed returns the value as compact JSON, or the reason why it does not match the field's type or schema.
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

// whole returns an integer with a zero fraction as digits alone: 3.0 becomes 3. ok is false if it is not an exact
// integer.
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
