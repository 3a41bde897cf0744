package contract

import (
	"encoding/json"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Our keywords replace those of the library that a large value makes expensive. For items and additionalProperties the
// library collects all failures (translator.cutShort). For uniqueItems and long enumerations it compares each value
// with all others of the same kind.
const (
	extensionName = "recurgent"
	extPrefix     = "x-"
	extItems      = extPrefix + "items"
	extAdditional = extPrefix + "additionalProperties"
	extUnique     = extPrefix + "uniqueItems"
	extEnum       = extPrefix + "enum"
)

// plainName returns the keyword as it stands in the deliverable.
func plainName(keyword string) string { return strings.TrimPrefix(keyword, extPrefix) }

// ours compiles our keywords. It is an extension of the library.
type ours struct{ end *ending }

// An ourSchema holds our keywords of one schema.
type ourSchema struct {
	items      *jsonschema.Schema
	skip       int // number of items that prefixItems covers
	additional *jsonschema.Schema
	known      map[string]any // members of properties, which additionalProperties does not cover
	unique     bool
	enum       map[string]bool // identities of the enumerated values; nil if there is no enumeration
	longest    int             // length of the longest identity
	end        *ending         // nil if the check cannot be interrupted
}

// Compile is part of jsonschema.ExtCompiler. With an ending it returns a schema even if there are no keywords of ours,
// since its Validate counts steps.
func (o ours) Compile(ctx jsonschema.CompilerContext, m map[string]any) (jsonschema.ExtSchema, error) {
	s := &ourSchema{end: o.end}
	var err error
	if _, ok := m[extItems]; ok {
		prefix, _ := m["prefixItems"].([]any)
		s.skip = len(prefix)
		if s.items, err = ctx.Compile(extItems, false); err != nil {
			return nil, err
		}
	}
	if _, ok := m[extAdditional]; ok {
		s.known, _ = m["properties"].(map[string]any)
		if s.additional, err = ctx.Compile(extAdditional, false); err != nil {
			return nil, err
		}
	}
	s.unique, _ = m[extUnique].(bool)
	if list, ok := m[extEnum].([]any); ok {
		s.enum = make(map[string]bool, len(list))
		for _, v := range list {
			text, _ := identity(nil, v, math.MaxInt)
			s.enum[string(text)], s.longest = true, max(s.longest, len(text))
		}
	}
	if s.items == nil && s.additional == nil && !s.unique && s.enum == nil && s.end == nil {
		return nil, nil
	}
	return s, nil
}

// Validate is part of jsonschema.ExtSchema. The library calls it for each value that the schema looks at. It stops at
// the first failure.
func (s *ourSchema) Validate(ctx jsonschema.ValidationContext, v any) error {
	s.end.step()
	if s.enum != nil {
		if text, fits := identity(nil, v, s.longest); !fits || !s.enum[string(text)] {
			return ctx.Error(extEnum, "is not one of %d values", len(s.enum))
		}
	}
	switch v := v.(type) {
	case []any:
		return s.elements(ctx, v)
	case map[string]any:
		if s.additional == nil {
			return nil
		}
		for _, k := range s.others(v) {
			if err := ctx.Validate(s.additional, extAdditional, v[k], pathToken(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// elements checks uniqueItems and items.
func (s *ourSchema) elements(ctx jsonschema.ValidationContext, v []any) error {
	if s.unique {
		seen := make(map[string]int, len(v))
		for i, e := range v {
			s.end.step()
			text, _ := identity(nil, e, math.MaxInt)
			if j, there := seen[string(text)]; there {
				return ctx.Error(extUnique, "items at index %d and %d are equal", j, i)
			}
			seen[string(text)] = i
		}
	}
	if s.items == nil {
		return nil
	}
	for i := s.skip; i < len(v); i++ {
		if err := ctx.Validate(s.items, extItems, v[i], strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

// others returns the keys that properties does not list, sorted, so that the first failure is always the same.
func (s *ourSchema) others(v map[string]any) []string {
	keys := make([]string, 0, len(v))
	for k := range v {
		if _, ok := s.known[k]; !ok {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	return keys
}

// listed reports whether an enumeration is long, with values short enough to find them by their identities.
func listed(list []any) bool {
	return len(list) > maxListed && !slices.ContainsFunc(list, func(v any) bool {
		_, fits := identity(nil, v, maxListedText)
		return !fits
	})
}

// identity appends a text that two values share if and only if they are equal in the sense of JSON Schema. It gives up
// if the text exceeds most bytes.
func identity(to []byte, v any, most int) (text []byte, fits bool) {
	fits = true
	switch v := v.(type) {
	case nil:
		to = append(to, 'n')
	case bool:
		to = strconv.AppendBool(to, v)
	case json.Number:
		to = append(append(to, '#'), plainNumber(string(v))...)
	case string:
		// with its length, so that no string can imitate the structure around it
		to = append(strconv.AppendInt(append(to, '"'), int64(len(v)), 10), ':')
		if len(to)+len(v) > most {
			return to, false
		}
		to = append(to, v...)
	case []any:
		to = append(to, '[')
		for i := 0; i < len(v) && fits; i++ {
			to, fits = identity(to, v[i], most)
		}
		to = append(to, ']')
	case map[string]any:
		if to = append(to, '{'); len(to)+2*len(v) > most { // check before sorting the keys
			return to, false
		}
		for _, k := range sortedKeys(v) {
			if to, fits = identity(to, k, most); fits {
				to, fits = identity(to, v[k], most)
			}
			if !fits {
				break
			}
		}
		to = append(to, '}')
	}
	return to, fits && len(to) <= most
}

// plainNumber returns a canonical form of a number: a sign, digits without zeros at either end, and the exponent of the
// last digit.
func plainNumber(n string) string {
	if n, negative := strings.CutPrefix(n, "-"); negative {
		return negated(plainNumber(n))
	}
	digits, exponent := n, 0
	if i := strings.IndexAny(n, "eE"); i >= 0 {
		digits = n[:i]
		exponent, _ = strconv.Atoi(n[i+1:]) // tame has bounded it
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	cut := strings.TrimRight(digits, "0")
	if cut == "" {
		return "0"
	}
	return cut + "e" + strconv.Itoa(exponent+len(digits)-len(cut))
}

// negated returns the negative of a canonical number. There is only one zero.
func negated(n string) string {
	if n == "0" {
		return n
	}
	return "-" + n
}
