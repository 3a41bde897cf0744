package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// shapeOf is a fingerprint of a body's shape, which stays the same while only its content changes: of JSON the keys
// and kinds to a depth of four (an array is its first element), of HTML and XML the element names, of CSV the first
// line. Two bodies of one schema have equal shapes; a program that cannot read a new shape meets drift, not a fault
// of its own.
func shapeOf(contentType, body string) string {
	shape, _ := describeShape(contentType, body)
	return shape
}

// maxOutline bounds an outline, in bytes.
const maxOutline = 400

// describeShape returns the shape and an outline of it that a model can read: JSON as keys with kinds (n number, s string, b
// boolean, 0 null), HTML and XML as element and class names, CSV as its first line.
func describeShape(contentType, body string) (shape, outline string) {
	shape, outline = shapeAndOutline(contentType, body)
	return shape, strings.ToValidUTF8(outline[:min(len(outline), maxOutline)], "")
}

func shapeAndOutline(contentType, body string) (shape, outline string) {
	trimmed := strings.TrimSpace(body)
	if trimmed == "" {
		return "empty", ""
	}
	contentType = strings.ToLower(contentType)
	switch {
	case (trimmed[0] == '{' || trimmed[0] == '[' || strings.Contains(contentType, "json")) && json.Valid([]byte(trimmed)):
		text := jsonShape(trimmed, 4)
		return "json:" + shortHash(text), text
	case trimmed[0] == '<':
		kind := "xml:"
		if strings.Contains(contentType, "html") || strings.Contains(strings.ToLower(trimmed[:min(len(trimmed), 512)]), "<html") {
			kind = "html:"
		}
		names := strings.Join(elementNames(trimmed), " ")
		return kind + shortHash(names), "elements " + names + "; classes " + strings.Join(classNames(trimmed), " ")
	case strings.Contains(contentType, "csv"):
		line, _, _ := strings.Cut(trimmed, "\n")
		return "csv:" + shortHash(strings.TrimSpace(line)), strings.TrimSpace(line)
	}
	return "text", ""
}

// classNames lists the different class names of a markup text, in the order in which they appear, at most 32.
func classNames(s string) []string {
	var names []string
	for len(names) < 32 {
		_, rest, ok := strings.Cut(s, `class="`)
		if !ok {
			break
		}
		value, after, ok := strings.Cut(rest, `"`)
		if !ok {
			break
		}
		for n := range strings.FieldsSeq(value) {
			if len(names) == 32 {
				return names
			}
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		s = after
	}
	return names
}

func shortHash(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:8])
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
