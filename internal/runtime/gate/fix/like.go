package fix

import "go/types"

// typeText returns a type as the file spells it.
func (m *fixer) typeText(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == m.Pkg {
			return ""
		}
		return p.Name()
	})
}

// like returns a value of the type as an argument of recurgent.As, or "" if decoded JSON neither has the type nor is
// converted to it.
func (m *fixer) like(t types.Type) string {
	if t == nil || decodedAs(t) == "" && jsonKind(t) == "" {
		return ""
	}
	text := m.typeText(t)
	switch u := types.Unalias(t).(type) {
	case *types.Basic:
		switch {
		case u.Kind() == types.Int:
			return "0"
		case u.Kind() == types.Float64:
			return "0.0"
		case u.Kind() == types.String:
			return `""`
		case u.Kind() == types.Bool:
			return "false"
		}
		return text + "(0)"
	default:
		return text + "{}"
	}
}

// asJSON returns the expression that converts text, of type any, to a type that decoded JSON has or is converted to, or
// "" for any other type.
func (m *fixer) asJSON(text string, from origin, t types.Type) string {
	like := m.like(t)
	switch {
	case like == "":
		return ""
	case from == ofArguments:
		return "recurgent.Must(" + text + ", " + like + ").(" + m.typeText(t) + ")"
	case jsonKind(t) == "":
		return text + ".(" + m.typeText(t) + ")"
	}
	return "recurgent.As(" + text + ", " + like + ").(" + m.typeText(t) + ")"
}
