package contract

// kind is what a keyword's value must look like.
type kind int

const (
	anything kind = iota
	count         // a whole number from 0
	number
	positive // a number above 0
	flag
	pattern
	names    // a list of distinct strings
	nameMap  // an object of lists of strings
	values   // a list that is not empty
	types    // a type, or a list of types
	schema   // one schema
	schemas  // a list of schemas, not empty
	patterns // an object of schemas by pattern
	members  // an object of schemas by name
)

// keyword says how the translator treats a keyword of JSON Schema 2020-12. Keywords that it does not list only
// annotate, and are left out.
type keyword struct {
	kind    kind
	inPlace bool // its schemas look at the same value as the schema around it
}

func keywordOf(name string) (keyword, bool) {
	switch name {
	case "type":
		return keyword{kind: types}, true
	case "enum":
		return keyword{kind: values}, true
	case "const":
		return keyword{kind: anything}, true
	case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minContains",
		"maxContains":
		return keyword{kind: count}, true
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return keyword{kind: number}, true
	case "multipleOf":
		return keyword{kind: positive}, true
	case "uniqueItems":
		return keyword{kind: flag}, true
	case "pattern":
		return keyword{kind: pattern}, true
	case "required":
		return keyword{kind: names}, true
	case "dependentRequired":
		return keyword{kind: nameMap}, true
	case "items", "additionalProperties", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
		return keyword{kind: schema}, true
	case "not", "if", "then", "else":
		return keyword{kind: schema, inPlace: true}, true
	case "allOf", "anyOf", "oneOf":
		return keyword{kind: schemas, inPlace: true}, true
	case "prefixItems":
		return keyword{kind: schemas}, true
	case "properties", "$defs", "definitions":
		return keyword{kind: members}, true
	case "patternProperties":
		return keyword{kind: patterns}, true
	case "dependentSchemas":
		return keyword{kind: members, inPlace: true}, true
	}
	return keyword{}, false
}

// pairs are lower and upper bounds; a lower one above its upper one lets nothing through.
func pairs() [][2]string {
	return [][2]string{{"minItems", "maxItems"}, {"minLength", "maxLength"}, {"minProperties", "maxProperties"},
		{"minContains", "maxContains"}, {"minimum", "maximum"}}
}
