package contract

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// link resolves the references, moves their targets to $defs, and bounds what the document expands to.
func (t *translator) link(root map[string]any) (map[string]any, error) {
	names := map[string]string{} // pointer → name in $defs
	for _, r := range t.found {
		target, ok := t.resolve(r.text)
		if !ok {
			return nil, &InvalidError{r.at + "/$ref", fmt.Sprintf("points at no schema of the document: %q", r.text)}
		}
		r.target = target
		if names[target] == "" {
			names[target] = "s" + strconv.Itoa(len(names))
		}
	}
	for _, r := range t.found {
		refer(r.in, "#/$defs/"+names[r.target])
	}
	defs := make(map[string]any, len(names))
	for _, target := range slices.Sorted(maps.Keys(names)) {
		name := names[target]
		t.origin.hoisted[name] = target
		m, ok := t.places[target].(map[string]any)
		if !ok {
			defs[name] = t.places[target]
			continue
		}
		defs[name] = maps.Clone(m)
		clear(m) // the original place becomes a reference to the copy
		m["$ref"] = "#/$defs/" + name
	}
	e := &expansion{defs: defs, active: map[string]bool{}, patterns: t.patterns}
	if err := e.schema(root, nil); err != nil {
		return nil, err
	}
	t.weight, t.patternSize = e.weight, e.patternSize
	if err := e.unambiguous(); err != nil {
		return nil, err
	}
	if len(defs) > 0 {
		root["$defs"] = defs
	}
	return root, nil
}

// refer adds a reference to a schema. If there is one already, the second one goes to allOf.
func refer(in map[string]any, to string) {
	if _, ok := in["$ref"]; !ok {
		in["$ref"] = to
		return
	}
	all, _ := in["allOf"].([]any)
	in["allOf"] = append(slices.Clip(all), map[string]any{"$ref": to})
}

// resolve returns the pointer of a reference's target, and whether a schema stands there.
func (t *translator) resolve(ref string) (string, bool) {
	ref = strings.TrimPrefix(ref, "#")
	if ref == "" {
		return "", true
	}
	if !strings.HasPrefix(ref, "/") {
		at, ok := t.anchors[ref]
		return at, ok
	}
	pointer := ""
	for _, token := range strings.Split(ref[1:], "/") {
		pointer += "/" + escapeToken(unescapeToken(token))
	}
	_, ok := t.places[pointer]
	return pointer, ok
}

// expansion walks a document as a check might: it follows each reference, but stops at recursive ones.
type expansion struct {
	defs   map[string]any
	active map[string]bool // definitions on the current path
	nodes  int             // schemas so far

	weight, patternSize int // see work.go
	patterns            map[string]int

	back [][]string // paths of the values at which a reference is recursive
}

// schema walks a schema that looks at the value at path, and counts it.
func (e *expansion) schema(node any, path []string) error {
	if e.nodes++; e.nodes > maxNodes {
		return &InvalidError{"", fmt.Sprintf("expands to more than %d schemas", maxNodes)}
	}
	m, ok := node.(map[string]any)
	if !ok {
		e.weight++
		return nil
	}
	e.weigh(m)
	if ref, ok := m["$ref"].(string); ok {
		if err := e.follow(strings.TrimPrefix(ref, "#/$defs/"), path); err != nil {
			return err
		}
	}
	return children(m, func(step string, child any) error {
		next := path
		if step != "" {
			next = append(slices.Clip(path), step)
		}
		return e.schema(child, next)
	})
}

// weigh adds the cost of one schema to the totals.
func (e *expansion) weigh(m map[string]any) {
	e.weight += weigh(m)
	if p, ok := m["pattern"].(string); ok {
		e.patternSize += e.patterns[p]
	}
	if all, ok := m["patternProperties"].(map[string]any); ok {
		for p := range all {
			e.patternSize += e.patterns[p]
		}
	}
}

// follow walks a definition, or records a recursive reference to it.
func (e *expansion) follow(name string, path []string) error {
	if e.active[name] {
		if e.back = append(e.back, path); len(e.back) > maxBackEdges {
			return &InvalidError{"", fmt.Sprintf("has more than %d recursive references", maxBackEdges)}
		}
		return nil
	}
	e.active[name] = true
	defer delete(e.active, name)
	return e.schema(e.defs[name], path)
}

// unambiguous refuses recursion that can reach the same value in two ways: the cost of a check would double with each
// level of the value.
func (e *expansion) unambiguous() error {
	for i, a := range e.back {
		for _, b := range e.back[:i] {
			if overlap(a, b) {
				return &InvalidError{"", "recurses in two ways into the same value, at " + strings.Join(a, "") +
					": let the alternatives differ in their keys, or recurse in one place"}
			}
		}
	}
	return nil
}

// overlap reports whether some value can lie on or below both paths.
func overlap(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != anyStep && b[i] != anyStep {
			return false
		}
	}
	return true
}

// anyStep is a step to a member or element that the schema does not name.
const anyStep = "/*"

// children calls f for each schema directly below a translated one. step is "" if the child looks at the same value.
func children(m map[string]any, f func(step string, child any) error) error {
	for _, name := range sortedKeys(m) {
		k, ok := keywordOf(plainName(name))
		if !ok || k.kind < schema {
			continue
		}
		visit := func(key string, child any) error {
			switch {
			case k.inPlace:
				return f("", child)
			case name == "properties" || name == "prefixItems":
				return f("/"+escapeToken(key), child)
			}
			return f(anyStep, child)
		}
		var err error
		switch v := m[name].(type) {
		case []any:
			for i, c := range v {
				if err = visit(strconv.Itoa(i), c); err != nil {
					return err
				}
			}
		case map[string]any:
			if k.kind == schema {
				err = visit("", v)
				break
			}
			for _, key := range sortedKeys(v) {
				if err = visit(key, v[key]); err != nil {
					return err
				}
			}
		case bool:
			err = visit("", v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// origins maps translated parts to the original document.
type origins struct {
	constraints string            // pointer of the translated constraints member, or ""
	hoisted     map[string]string // name in $defs → original pointer
	renamed     map[string]bool   // original pointers of a minItems that is written min_items
	implied     map[string]bool   // original pointers of types that are implied by min_items
}

// pointer returns the original pointer of a keyword, from its path in the translated document.
func (o origins) pointer(tokens []string) string {
	p := ""
	if len(tokens) >= 2 && tokens[0] == "$defs" {
		p, tokens = o.hoisted[tokens[1]], tokens[2:]
	}
	for _, t := range tokens {
		switch t {
		case extItems, extAdditional, extUnique, extEnum:
			t = plainName(t)
		}
		p += "/" + escapeToken(t)
		if o.constraints != "" && p == o.constraints {
			p = "/constraints"
		}
	}
	return p
}

// spelled returns an original pointer as a path for messages: keys joined by dots, below "deliverable", as written.
func (o origins) spelled(pointer string) string {
	if o.renamed[pointer] || o.implied[pointer] {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')] + "/min_items"
	}
	tokens := strings.Split(pointer, "/")[1:]
	for i, t := range tokens {
		tokens[i] = unescapeToken(t)
	}
	return strings.Join(append([]string{"deliverable"}, tokens...), ".")
}
