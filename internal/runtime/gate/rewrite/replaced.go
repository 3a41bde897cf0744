package rewrite

import "go/types"

// replaced maps names of packages to their replacements in package support. It covers the clock, randomness, the
// terminal, the decoding of numbers, and the functions of package maps that range over maps.
var replaced = map[string]map[string]string{
	"time":          {"Now": "Now", "Since": "Since", "Until": "Until", "Sleep": "Sleep", "LoadLocation": "LoadLocation"},
	"crypto/rand":   {"Read": "Read", "Text": "Text", "Reader": "Reader"},
	"encoding/json": {"Unmarshal": "Unmarshal"},
	"fmt": {"Print": "Print", "Println": "Println", "Printf": "Printf", "Scan": "Scan", "Scanln": "Scanln",
		"Scanf": "Scanf"},
	"maps": {"All": "MapsAll", "Keys": "MapsKeys", "Values": "MapsValues", "Equal": "MapsEqual",
		"EqualFunc": "MapsEqualFunc", "DeleteFunc": "MapsDeleteFunc"},
}

// generators maps packages whose functions are methods of one generator to the name of that generator in package
// support.
var generators = map[string]string{"math/rand": "Rand", "math/rand/v2": "RandV2"}

// constructors are functions of these packages that are not methods of a generator.
var constructors = map[string]bool{"New": true, "NewSource": true, "NewZipf": true, "NewPCG": true, "NewChaCha8": true}

// replacement returns the name in package support that replaces a name, or "" if there is none.
func replacement(path, name string, obj types.Object) string {
	if to := replaced[path][name]; to != "" {
		return to
	}
	generator := generators[path]
	if _, isFunc := obj.(*types.Func); generator == "" || !isFunc || constructors[name] {
		return ""
	}
	if path == "math/rand/v2" && name == "N" {
		return "N"
	}
	return generator + "." + name
}
