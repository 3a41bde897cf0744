package contract

import (
	"slices"
	"strings"
	"unicode"
)

// constraintNames are the names of all constraints.
var constraintNames = strings.Fields(
	"type enum const minItems maxItems minLength maxLength minProperties maxProperties minContains maxContains minimum maximum " +
		"exclusiveMinimum exclusiveMaximum multipleOf uniqueItems pattern required dependentRequired items additionalProperties contains propertyNames " +
		"unevaluatedItems unevaluatedProperties not if then else allOf anyOf oneOf prefixItems properties patternProperties dependentSchemas " +
		"min_items constraints")

// annotations are names that check nothing.
var annotations = strings.Fields(
	"title description default example examples format deprecated readOnly writeOnly contentEncoding contentMediaType contentSchema definitions")

// silent reports whether an unknown name is known to check nothing at that place, or is handled elsewhere.
func silent(name, at string) bool {
	return name == "min_items" || name == "constraints" && at == "" || name == "$schema" || name == "$comment" ||
		slices.Contains(annotations, name)
}

// leastTypo is the least length of a name in which one wrong letter counts as a typo. Shorter names too easily resemble
// other words.
const leastTypo = 6

// meantName returns the constraint that an unknown name was probably meant to be, or "". Case, separators, a plural,
// and minimum for min do not count as differences. From leastTypo letters on, one letter may be wrong, missing, added
// or transposed; from 8 letters on, two. A name that is two letters longer or shorter, such as requiredIf, is another
// word.
func meantName(name string) string {
	if slices.Contains(constraintNames, name) || slices.Contains(annotations, name) || strings.HasPrefix(name, "$") ||
		strings.HasPrefix(name, "x-") || len(name) > 40 {
		return ""
	}
	var meant string
	nearest := 1 + min(1, len(bareName(name))/leastTypo) + min(1, len(bareName(name))/8)
	for _, known := range constraintNames {
		far := min(typos(PlainWord(name), PlainWord(known)), typos(bareName(name), bareName(known)))
		if far < nearest && (far == 0 || PlainWord(name)[0] == known[0]) {
			meant, nearest = known, far
		}
	}
	return meant
}

// PlainWord removes everything but letters and digits, and converts to lower case, so that words which differ only by
// case or separators become equal.
func PlainWord(key string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, key)
}

// bareName is PlainWord with further variants removed: minimum, maximum, length and plurals.
func bareName(name string) string {
	name = strings.NewReplacer("minimum", "min", "maximum", "max", "length", "len").Replace(PlainWord(name))
	if rest, ok := strings.CutSuffix(name, "ies"); ok {
		return rest + "y"
	}
	return strings.TrimSuffix(name, "s")
}

// typos returns the edit distance of texts whose lengths differ by at most one, and a large number for others.
func typos(a, b string) int {
	if longer := len(a) - len(b); longer < -1 || longer > 1 {
		return len(a) + len(b)
	}
	return edits(a, b)
}

// edits returns the optimal string alignment distance of two short texts: substitutions, deletions, insertions and
// transpositions of neighbors.
func edits(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func differ(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
