package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Names satisfy the limits that models and agents set for function names.
const (
	maxName     = 64
	shortDigits = 8  // of the hash, in names that do not spell out role and method
	longDigits  = 16 // in names that several methods would otherwise share
)

// A Method identifies a method by its role and name.
type Method struct{ Role, Name string }

// toolName returns the method's name as a tool: role__method, with "_" for each character outside [A-Za-z0-9_-]. A name
// that begins with a digit or a dash gets a leading "_", because Gemini rejects it. If anything was changed, the name
// exceeds 64 characters, or a part contains "__", the name is cut to 55 characters and gets "_" and 8 digits of a hash
// of role and method.
//
// Two methods may have the same name; see table.
func toolName(m Method) string { return nameFrom(m, plainName(m)) }

// nameFrom returns plain if role and method can be read from it, otherwise a shortened form with a hash.
func nameFrom(m Method, plain string) string {
	if plain == m.Role+"__"+m.Name && len(plain) <= maxName && !strings.Contains(m.Role, "__") &&
		!strings.Contains(m.Name, "__") {
		return plain // role and method can be read from it
	}
	return hashedName(m, plain, shortDigits)
}

// plainName joins role and method, without a hash.
func plainName(m Method) string {
	name := allowed(m.Role) + "__" + allowed(m.Name)
	if first := name[0]; first == '-' || first >= '0' && first <= '9' {
		return "_" + name
	}
	return name
}

// earlierName returns the method's name from when names could begin with a digit or a dash, or "" if that is unchanged.
func earlierName(m Method) string {
	name := allowed(m.Role) + "__" + allowed(m.Name)
	if name == plainName(m) {
		return ""
	}
	return nameFrom(m, name)
}

// allowed replaces each character that is not allowed in names by "_".
func allowed(part string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, part)
}

// propertyKey returns the key of a parameter in schemas: its name if it has at most 64 letters, digits and _ . -, and
// no digit, dot or dash first, since model APIs reject others. Otherwise each other character becomes "_", with a
// number if that key is taken. It marks the key as taken.
func propertyKey(name string, taken map[string]bool) string {
	key := allowed(strings.ReplaceAll(name, ".", "_"))
	if first := key[0]; first == '-' || first >= '0' && first <= '9' {
		key = "_" + key
	}
	if key == strings.ReplaceAll(name, ".", "_") && name[0] != '.' {
		return name
	}
	key = key[:min(len(key), maxName-len("_64"))]
	made := key
	for i := 2; taken[made]; i++ {
		made = key + "_" + strconv.Itoa(i)
	}
	taken[made] = true
	return made
}

// IsName reports whether a tool for a method may have the name.
func IsName(name string) bool {
	return len(name) <= maxName && strings.Contains(name, "__") && name == allowed(name)
}

// hashedName shortens plain to make room for "_" and that many digits of a hash of role and method. The NUL separates
// them unambiguously.
func hashedName(m Method, plain string, digits int) string {
	sum := sha256.Sum256([]byte(m.Role + "\x00" + m.Name))
	return plain[:min(len(plain), maxName-1-digits)] + "_" + hex.EncodeToString(sum[:])[:digits]
}

// A table maps names to methods and back. It is immutable.
type table struct {
	methods   map[string]Method
	names     map[Method]string   // lacks methods without a unique name
	ambiguous map[string][]Method // names that several methods claim; they stand for none
}

// newTable assigns names to the methods. Names are unique, and a name never moves from one method to another: methods
// that claim the same name get the long form, and the shared name then stands for nothing. A method whose long form is
// also taken has no name. Names of earlier versions still work.
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
	// A long form must not collide with any claimed name, even one that several methods claim.
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

// rememberEarlier maps each earlier name of exactly one method to that method, unless the name is in use.
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

// give assigns the name to the method.
func (t *table) give(name string, m Method) { t.methods[name], t.names[m] = m, name }

func compareMethods(a, b Method) int {
	if c := strings.Compare(a.Role, b.Role); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
