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

// toolName returns the method's name as a tool: role__method with "_" for each character outside [A-Za-z0-9_-]. Where
// that changed something, is longer than 64 or has "__" in a part, it is cut to 55 characters, to which "_" and 8 digits
// of a hash of role and method are added.
//
// Two methods may have the same name; see table.
func toolName(m Method) string {
	name, exact := plainName(m)
	if exact {
		return name
	}
	return hashedName(m, name, shortDigits)
}

// plainName joins role and method, and reports whether the result shows both exactly.
func plainName(m Method) (name string, exact bool) {
	name = allowed(m.Role) + "__" + allowed(m.Name)
	return name, name == m.Role+"__"+m.Name && len(name) <= maxName && !strings.Contains(m.Role, "__") && !strings.Contains(m.Name, "__")
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
// form is taken too has no name.
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
			plain, _ := plainName(m)
			n := hashedName(m, plain, longDigits)
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
	return t
}

func (t *table) give(name string, m Method) { t.methods[name], t.names[m] = m, name }

func compareMethods(a, b Method) int {
	if c := strings.Compare(a.Role, b.Role); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
