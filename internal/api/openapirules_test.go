package api

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	document "github.com/recurgentd/recurgentd/api"
)

// object is a mapping of the document, in its order.
type object = map[string]any

// written returns the document with its references unresolved.
func written(t *testing.T) object {
	t.Helper()
	var doc object
	if err := yaml.Unmarshal(document.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// eachSchema calls f with every schema of the document and its path. It skips examples, which contain data.
func eachSchema(at string, node any, f func(at string, schema object)) {
	switch n := node.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(n)) {
			below := at + "/" + key
			switch key {
			case "example", "examples":
			case "schema":
				nestedSchemas(below, n[key], f)
			case "schemas":
				if at == "/components" {
					for name, s := range n[key].(object) {
						nestedSchemas(below+"/"+name, s, f)
					}
				}
			default:
				eachSchema(below, n[key], f)
			}
		}
	case []any:
		for i, v := range n {
			eachSchema(fmt.Sprintf("%s/%d", at, i), v, f)
		}
	}
}

// nestedSchemas calls f with the schema and the schemas within it.
func nestedSchemas(at string, node any, f func(at string, schema object)) {
	s, ok := node.(object)
	if !ok {
		return // true and false are schemas, too
	}
	f(at, s)
	for _, key := range []string{"properties", "patternProperties"} {
		if members, ok := s[key].(object); ok {
			for name, v := range members {
				nestedSchemas(at+"/"+key+"/"+name, v, f)
			}
		}
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		nestedSchemas(at+"/"+key, s[key], f)
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		if all, ok := s[key].([]any); ok {
			for i, v := range all {
				nestedSchemas(fmt.Sprintf("%s/%s/%d", at, key, i), v, f)
			}
		}
	}
}

// typesOf returns the types of a schema except null.
func typesOf(s object) []string {
	var types []string
	list, ok := s["type"].([]any)
	if !ok {
		list = []any{s["type"]}
	}
	for _, one := range list {
		if name, ok := one.(string); ok && name != "null" {
			types = append(types, name)
		}
	}
	return types
}

// Generators of clients must be able to read the schemas: openapi-typescript makes an object without members of a
// schema that does not declare any, and ogen refuses several types.
func TestSchemasAreForGenerators(t *testing.T) {
	t.Parallel()
	has := func(s object, keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { _, ok := s[k]; return ok })
	}
	eachSchema("", written(t), func(at string, s object) {
		types := typesOf(s)
		is := func(name string) bool { return slices.Equal(types, []string{name}) }
		for _, rule := range []struct {
			broken bool
			words  string
		}{
			{is("object") && !has(s, "properties", "patternProperties", "additionalProperties"),
				"an object without members says additionalProperties: true, or false where it is empty"},
			{is("array") && !has(s, "items"), "an array says what its items are"},
			{len(types) > 1, "one type; a value that may be anything has none, and one of several is oneOf"},
			{has(s, "nullable"), "what may be null has the type null beside its own"},
			{has(s, "enum") && len(types) == 0, "an enum has a type"},
			{len(types) == 0 && !has(s, "type", "$ref", "oneOf", "anyOf", "allOf", "description"),
				"a value that may be anything says so in its description"},
			{has(s, "anyOf") && !orNull(s), "anyOf is for what may be null; alternatives are oneOf"},
			{has(s, "const"), "a constant is an enum of one value"},
		} {
			if rule.broken {
				t.Errorf("%s: %s", at, rule.words)
			}
		}
		seen := map[string]string{}
		members, _ := s["properties"].(object)
		for name := range members {
			if plain := identifier(name); seen[plain] != "" {
				t.Errorf("%s: %s and %s are one name in some languages", at, name, seen[plain])
			} else {
				seen[plain] = name
			}
		}
	})
}

// orNull reports whether anyOf consists of a schema and null.
func orNull(s object) bool {
	all := s["anyOf"].([]any)
	return len(all) == 2 && slices.ContainsFunc(all, func(v any) bool { return v.(object)["type"] == "null" })
}

// identifier reduces a name as generators do: case and punctuation do not count.
func identifier(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}

// Generators in Go and TypeScript distinguish alternatives by a required member that no other one has, or with values
// that no other one has.
func TestAlternativesDiffer(t *testing.T) {
	t.Parallel()
	doc := written(t)
	resolve := func(v any) object {
		s := v.(object)
		for {
			ref, ok := s["$ref"].(string)
			if !ok {
				return s
			}
			s = doc["components"].(object)["schemas"].(object)[strings.TrimPrefix(ref,
				"#/components/schemas/")].(object)
		}
	}
	eachSchema("", doc, func(at string, s object) {
		all, _ := s["oneOf"].([]any)
		objects := map[string]object{}
		for i, v := range all {
			if one := resolve(v); slices.Equal(typesOf(one), []string{"object"}) {
				objects[fmt.Sprint(at, "/oneOf/", i)] = one
			}
		}
		for name, one := range objects {
			if len(objects) > 1 && !distinct(one, objects) {
				t.Errorf("%s has no required member that the other alternatives lack, or that has other values there",
					name)
			}
		}
	})
}

// distinct reports whether a required member distinguishes the object from the others.
func distinct(one object, all map[string]object) bool {
	required, _ := one["required"].([]any)
	return slices.ContainsFunc(required, func(r any) bool {
		mine := one["properties"].(object)[r.(string)].(object)
		for _, other := range all {
			theirs, there := other["properties"].(object)[r.(string)].(object)
			if fmt.Sprint(other) != fmt.Sprint(one) && there && !apart(mine, theirs) {
				return false
			}
		}
		return true
	})
}

// apart reports whether both are enums without a common value.
func apart(a, b object) bool {
	x, _ := a["enum"].([]any)
	y, _ := b["enum"].([]any)
	return len(x) > 0 && len(y) > 0 && !slices.ContainsFunc(x, func(v any) bool { return slices.Contains(y, v) })
}

// Operations, and the components of the document, become names of functions and types, so they must be valid and
// unique.
func TestNamesAreForGenerators(t *testing.T) {
	t.Parallel()
	doc := written(t)
	operations := map[string]string{}
	good := regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	for path, item := range doc["paths"].(object) {
		for method, op := range item.(object) {
			o, ok := op.(object)
			if !ok || method == "parameters" {
				continue
			}
			id, _ := o["operationId"].(string)
			at := method + " " + path
			if !good.MatchString(id) {
				t.Errorf("%s: the operationId %q is no identifier", at, id)
			}
			if other := operations[strings.ToLower(id)]; other != "" {
				t.Errorf("%s and %s have one operationId", at, other)
			}
			operations[strings.ToLower(id)] = at
		}
	}
	types := map[string]string{}
	for name, v := range doc["components"].(object)["schemas"].(object) {
		members, _ := v.(object)["properties"].(object)
		for member, m := range members {
			if m.(object)["enum"] != nil {
				types[identifier(name+member)] = "schemas/" + name + "/" + member
			}
		}
	}
	for _, kind := range []string{"schemas", "headers", "parameters"} { // responses are types of their own everywhere
		for name, v := range doc["components"].(object)[kind].(object) {
			if s, _ := v.(object)["schema"].(object); kind == "headers" && s["enum"] == nil {
				continue // no type is generated
			}
			if other := types[identifier(name)]; other != "" {
				t.Errorf("components/%s/%s and components/%s would be one type", kind, name, other)
			}
			types[identifier(name)] = kind + "/" + name
		}
	}
}

// Linters look for schemas in examples, too, so examples must not look like schemas.
func TestExamplesOfSchemasAreWhole(t *testing.T) {
	t.Parallel()
	var look func(at string, node any)
	look = func(at string, node any) {
		switch n := node.(type) {
		case object:
			if _, ok := n["items"]; n["type"] == "array" && !ok {
				t.Errorf("%s: an array without items", at)
			}
			for key, v := range n {
				look(at+"/"+key, v)
			}
		case []any:
			for i, v := range n {
				look(fmt.Sprintf("%s/%d", at, i), v)
			}
		}
	}
	look("", written(t))
}

// Generators treat bodies that are not JSON as text or bytes and cannot read their members.
func TestBytesAreForGenerators(t *testing.T) {
	t.Parallel()
	for path, item := range loadDocument(t).Paths.Map() {
		for method, op := range item.Operations() {
			bodies := []openapi3.Content{}
			if op.RequestBody != nil {
				bodies = append(bodies, op.RequestBody.Value.Content)
			}
			for _, r := range op.Responses.Map() {
				bodies = append(bodies, r.Value.Content)
			}
			for _, content := range bodies {
				for media, v := range content {
					if !strings.Contains(media, "json") && (v.Schema == nil || !v.Schema.Value.Type.Is("string")) {
						t.Errorf("%s %s: the schema of %s is not a string", method, path, media)
					}
				}
			}
		}
	}
}

// No operation has the same response for a status and as default: ogen makes a type for each, and accepts only one as a
// reply.
func TestResponsesAreForGenerators(t *testing.T) {
	t.Parallel()
	for path, item := range written(t)["paths"].(object) {
		for method, op := range item.(object) {
			o, _ := op.(object)
			responses, _ := o["responses"].(object)
			rest := map[any]bool{}
			for _, code := range []string{"4XX", "5XX", "default"} {
				if r, _ := responses[code].(object); r["$ref"] != nil {
					rest[r["$ref"]] = true
				}
			}
			for code, r := range responses {
				if code != "4XX" && code != "5XX" && code != "default" && rest[r.(object)["$ref"]] {
					t.Errorf("%s %s: the response of %s is that of other statuses, too", method, path, code)
				}
			}
		}
	}
}
