package contract

import (
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// leaf is one failure that the library found.
type leaf struct {
	at      []string // path of the invalid value
	keyword []string // path of the violated keyword in the translated document
	text    string   // set only if the library could not check the value
}

// firstLeaf selects the failure nearest to the root. Among equals the order of keys decides, so the choice does not
// depend on the iteration order of maps. Failures within alternatives (anyOf, oneOf) are ignored; the alternative
// itself counts.
func firstLeaf(e *jsonschema.ValidationError) leaf {
	var best *leaf
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		keyword := pathOf(fragment(e.AbsoluteKeywordLocation))
		last := ""
		if len(keyword) > 0 {
			last = keyword[len(keyword)-1]
		}
		if len(e.Causes) > 0 && (e.Message == "" || last != "anyOf" && last != "oneOf") {
			for _, c := range e.Causes {
				walk(c)
			}
			return
		}
		l := leaf{at: pathOf(e.InstanceLocation), keyword: keyword}
		if best == nil || l.before(*best) {
			best = &l
		}
	}
	walk(e)
	return *best
}

// before orders failures: by depth, then by position, then by keyword.
func (l leaf) before(o leaf) bool {
	if d := len(l.at) - len(o.at); d != 0 {
		return d < 0
	}
	for i := range l.at {
		if d := compareTokens(l.at[i], o.at[i]); d != 0 {
			return d < 0
		}
	}
	if d := l.rank() - o.rank(); d != 0 {
		return d < 0
	}
	return slices.Compare(l.keyword, o.keyword) < 0
}

// rank orders the keywords that fail at the same value: first its type, then missing keys, then the rest.
func (l leaf) rank() int {
	switch l.last() {
	case "type":
		return 0
	case "required":
		return 1
	case "minItems":
		return 2
	}
	return 3
}

// last returns the violated keyword.
func (l leaf) last() string {
	if len(l.keyword) == 0 {
		return ""
	}
	return l.keyword[len(l.keyword)-1]
}

// compareTokens compares indexes as numbers and other keys as text.
func compareTokens(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return x - y
	}
	return strings.Compare(a, b)
}

// fragment returns the part of a URL after "#".
func fragment(u string) string {
	_, f, _ := strings.Cut(u, "#")
	return f
}

// pathOf splits a location of the library into unescaped tokens.
func pathOf(location string) []string {
	if location == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(location, "/"), "/")
	for i, t := range tokens {
		tokens[i] = unescapeToken(t)
	}
	return tokens
}
