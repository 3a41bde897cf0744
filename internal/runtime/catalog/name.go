package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Names fit what models and agents allow for function names.
const (
	maxName     = 64
	shortDigits = 8  // of the hash, in names that do not show role and method exactly
	longDigits  = 16 // in names that would otherwise stand for several methods
)

// A Method is a role's method: what a name stands for.
type Method struct{ Role, Name string }

// toolName returns the method's name as a tool: role__method with "_" for each character outside [A-Za-z0-9_-], and before a digit or a dash at its
// beginning, which Gemini does not take. Where that changed something, is longer than 64 or has "__" in a part, it is cut to 55 characters, to which
// "_" and 8 digits of a hash of role and method are added.
//
// Two methods may have the same name; see table.
func toolName(m Method) string { return nameFrom(m, plainName(m)) }

func nameFrom(m Method, plain string) string {
	if plain == m.Role+"__"+m.Name && len(plain) <= maxName && !strings.Contains(m.Role, "__") &&
		!strings.Contains(m.Name, "__") {
		return plain // it shows both exactly
	}
	return hashedName(m, plain, shortDigits)
}

// plainName joins role and method.
func plainName(m Method) string {
	name := allowed(m.Role) + "__" + allowed(m.Name)
	if first := name[0]; first == '-' || first >= '0' && first <= '9' {
		return "_" + name
	}
	return name
}

// earlierName returns the name that the method had when names could begin with a digit or a dash, "" where it has not changed.
func earlierName(m Method) string {
	name := allowed(m.Role) + "__" + allowed(m.Name)
	if name == plainName(m) {
		return ""
	}
	return nameFrom(m, name)
}

func allowed(part string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, part)
}

// IsName reports whether a tool may have the name.
func IsName(name string) bool {
	return len(name) <= maxName && strings.Contains(name, "__") && name == allowed(name)
}

func hashedName(m Method, plain string, digits int) string {
	sum := sha256.Sum256([]byte(m.Role + "\x00" + m.Name))
	return plain[:min(len(plain), maxName-1-digits)] + "_" + hex.EncodeToString(sum[:])[:digits]
}

// A table maps names to methods and back. It does not change once made.
type table struct {
	methods   map[string]Method
	names     map[Method]string   // a method that no name of its own can be found for is missing
	ambiguous map[string][]Method // names that stand for none, since several methods claim them
}

// newTable names the methods. None has another's name, and none takes over a name that another one had: methods that
// claim the same name have the long form, and the name itself stands for nothing from then on. A method whose long
// form is taken too has no name. Names of earlier versions are known, too.
func newTable(methods []Method) *table {
	t := &table{methods: map[string]Method{}, names: map[Method]string{}, ambiguous: map[string][]Method{}}
	claims := map[string][]Method{}
	for _, m := range methods {
		name := toolName(m)
		claims[name] = append(claims[name], m)
	}
	long := map[string][]Method{}
	for name, by := range claims {
		if len(by) == 1 {
			t.give(name, by[0])
			continue
		}
		t.ambiguous[name] = by
		for _, m := range by {
			n := hashedName(m, plainName(m), longDigits)
			long[n] = append(long[n], m)
		}
	}
	for name, by := range long {
		if _, taken := claims[name]; !taken && len(by) == 1 {
			t.give(name, by[0])
		}
	}
	for _, by := range t.ambiguous {
		slices.SortFunc(by, compareMethods)
	}
	t.rememberEarlier(methods)
	return t
}

// rememberEarlier has each name that one method had, and that stands for nothing now, stand for it.
func (t *table) rememberEarlier(methods []Method) {
	claims := map[string][]Method{}
	for _, m := range methods {
		if name := earlierName(m); name != "" {
			claims[name] = append(claims[name], m)
		}
	}
	for name, by := range claims {
		_, taken := t.methods[name]
		if !taken && len(by) == 1 && t.ambiguous[name] == nil {
			t.methods[name] = by[0]
		}
	}
}

func (t *table) give(name string, m Method) { t.methods[name], t.names[m] = m, name }

func compareMethods(a, b Method) int {
	if c := strings.Compare(a.Role, b.Role); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
