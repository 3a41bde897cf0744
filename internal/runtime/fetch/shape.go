package fetch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// maxOutline bounds an outline in bytes.
const maxOutline = 400

// describeShape fills in the shape of a body: a fingerprint, an outline for a model, and the structure with which
// programs' sources are compared. The fingerprint stays the same while only the content changes. For JSON it covers the
// keys and kinds to a depth of four (an array is its first element), for HTML and XML the element names, for CSV the
// first line. The outline shows JSON as keys with kinds (n number, s string, b boolean, 0 null), HTML and XML as
// element and class names, and CSV as its first line.
func (n *Note) describeShape(body string) {
	trimmed, contentType := strings.TrimSpace(body), strings.ToLower(n.ContentType)
	outline := ""
	switch {
	case trimmed == "":
		n.Shape = shapeEmpty
	case (trimmed[0] == '{' || trimmed[0] == '[' || trimmed == "null" || strings.Contains(contentType, "json")) &&
		json.Valid([]byte(trimmed)):
		outline = jsonShape(trimmed, 4)
		n.Shape, n.json = "json:"+shortHash(outline), cut(outline, maxJSONForm)
	case trimmed[0] == '<':
		kind := "xml:"
		if strings.Contains(contentType, "html") || strings.Contains(strings.ToLower(trimmed[:min(len(trimmed), 512)]),
			"<html") {
			kind = "html:"
		}
		n.names = tallyMarkup(trimmed)
		names := strings.Join(n.names.elements(), " ")
		n.Shape, outline = kind+shortHash(names), "elements "+names+"; classes "+strings.Join(n.names.classes(), " ")
	case strings.Contains(contentType, "csv"):
		outline, _, _ = strings.Cut(trimmed, "\n")
		outline = strings.TrimSpace(outline)
		n.Shape = "csv:" + shortHash(outline)
	default:
		n.Shape = "text"
	}
	n.Outline = cut(outline, maxOutline)
}

// cut returns the beginning of a text as valid UTF-8, in its own memory.
func cut(s string, most int) string {
	return strings.ToValidUTF8(strings.Clone(s[:min(len(s), most)]), "")
}

// shapeEmpty is the shape of an empty body, which is compatible with every other.
const shapeEmpty = "empty"

// Form returns what is stored of the body for a program whose source contains the words: the structure of JSON, the
// names in markup, or the shape.
func (n *Note) Form(words map[string]bool) string {
	kind, _, _ := strings.Cut(n.Shape, ":")
	switch {
	case n.json != "":
		return kind + " " + n.json
	case n.names != nil:
		return kind + n.names.form(words)
	}
	return n.Shape
}

// Keeps reports whether the body still has the shape that was stored as form for an earlier body and a program whose
// source contains the words. A form of an earlier version is only a fingerprint; then outline has more detail.
func (n *Note) Keeps(form, outline string, words map[string]bool) bool {
	kind, _, _ := strings.Cut(n.Shape, ":")
	was, rest, remembered := strings.Cut(form, " ")
	if !remembered {
		was, _, _ = strings.Cut(form, ":")
	}
	switch {
	case n.Shape == shapeEmpty || form == shapeEmpty:
		return true
	case was != kind || n.json == "" && n.names == nil || !remembered && outline == "":
		return form == n.Shape
	case n.json != "":
		return form == n.Shape || keepsJSON(cmp.Or(rest, outline), n.json)
	case remembered:
		return readTallies(rest).keptBy(n.names, words)
	}
	return earlierTallies(outline).keptBy(n.names, words)
}

func shortHash(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:8])
}
