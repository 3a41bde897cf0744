package contract

// A kind is the expected form of a keyword's value.
type kind int

// From schema on, the value contains schemas: code compares kinds with it.
const (
	anything kind = iota
	count         // a whole number, at least 0
	number
	positive // a number above 0
	flag
	pattern
	names    // a list of distinct strings
	nameMap  // an object whose values are lists of strings
	values   // a list with at least one value
	types    // a type or a list of types
	schema   // one schema
	schemas  // a list with at least one schema
	patterns // an object of schemas by regular expression
	members  // an object of schemas by name
)

// A keyword is how the translator treats a keyword of JSON Schema 2020-12.
type keyword struct {
	kind    kind
	inPlace bool // its schemas look at the same value as the surrounding schema
}

// keywordOf returns the keyword of that name. Unlisted keywords are annotations: the translator leaves them out.
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

// pairs returns the keywords that are lower and upper bounds of the same thing.
func pairs() [][2]string {
	return [][2]string{{"minItems", "maxItems"}, {"minLength", "maxLength"}, {"minProperties", "maxProperties"},
		{"minContains", "maxContains"}, {"minimum", "maximum"}}
}
