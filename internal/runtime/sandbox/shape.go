package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// shapeOf is a fingerprint of a body's form, which stays the same while only its content changes: of JSON the keys
// and kinds to a depth of four (an array is its first element), of HTML and XML the element names, of CSV the first
// line. Two bodies of one form have equal shapes; a program that cannot read a new shape meets drift, not a fault
// of its own.
func shapeOf(contentType, body string) string {
	trimmed := strings.TrimSpace(body)
	if trimmed == "" {
		return "empty"
	}
	contentType = strings.ToLower(contentType)
	var v any
	switch {
	case (trimmed[0] == '{' || trimmed[0] == '[' || strings.Contains(contentType, "json")) && json.Unmarshal([]byte(trimmed), &v) == nil:
		return "json:" + shortHash(jsonShape(v, 4))
	case trimmed[0] == '<':
		kind := "xml:"
		if strings.Contains(contentType, "html") || strings.Contains(strings.ToLower(trimmed[:min(len(trimmed), 512)]), "<html") {
			kind = "html:"
		}
		return kind + shortHash(strings.Join(elementNames(trimmed), " "))
	case strings.Contains(contentType, "csv"):
		line, _, _ := strings.Cut(trimmed, "\n")
		return "csv:" + shortHash(strings.TrimSpace(line))
	}
	return "text"
}

func shortHash(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:8])
}

func jsonShape(v any, depth int) string {
	switch v := v.(type) {
	case map[string]any:
		if depth == 0 {
			return "{}"
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		var b strings.Builder
		b.WriteByte('{')
		for _, k := range keys {
			b.WriteString(k + ":" + jsonShape(v[k], depth-1) + ",")
		}
		b.WriteByte('}')
		return b.String()
	case []any:
		if depth == 0 || len(v) == 0 {
			return "[]"
		}
		return "[" + jsonShape(v[0], depth-1) + "]"
	case string:
		return "s"
	case float64:
		return "n"
	case bool:
		return "b"
	}
	return "0"
}

// elementNames lists the different element names of a markup text, sorted, at most 64.
func elementNames(s string) []string {
	seen := map[string]bool{}
	for len(seen) < 64 {
		_, rest, ok := strings.Cut(s, "<")
		if !ok {
			break
		}
		end := strings.IndexFunc(rest, func(r rune) bool {
			return !(r == ':' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		})
		if end > 0 && end < 64 {
			seen[strings.ToLower(rest[:end])] = true
		}
		s = rest
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// recordedFetch is the note of a fetch that was served from a journal.
func recordedFetch(params json.RawMessage, e *journalEntry) Fetch {
	var q recurgent.Request
	var r recurgent.Response
	note := Fetch{Mode: "recorded"}
	if json.Unmarshal(params, &q) == nil {
		note.URL = safeURL(q.URL)
	}
	if e.Error != nil {
		note.ErrorKind = fetchNetwork
		if e.Error.Type == "denied" {
			note.ErrorKind = fetchDenied
		}
		return note
	}
	if json.Unmarshal(e.Result, &r) == nil {
		note.describe(&r)
	}
	return note
}
