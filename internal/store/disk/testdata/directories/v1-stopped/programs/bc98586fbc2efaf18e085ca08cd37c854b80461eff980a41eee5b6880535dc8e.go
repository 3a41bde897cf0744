package tool

import (
	"strconv"
	"strings"
	"unicode"

	"recurgent"
)

// linear is factor*x + constant.
type linear struct{ factor, constant float64 }

// side reads one side of a linear equation in one unknown, such as 2x + 5.
func side(text string, name *byte) (linear, error) {
	var sum linear
	rest := strings.Join(strings.FieldsFunc(text, unicode.IsSpace), "")
	if rest == "" {
		return sum, recurgent.Fail("invalid_input", "a side of the equation is empty")
	}
	for len(rest) > 0 {
		sign := 1.0
		if rest[0] == '+' || rest[0] == '-' {
			if rest[0] == '-' {
				sign = -1
			}
			rest = rest[1:]
		}
		end := strings.IndexAny(rest, "+-")
		if end < 0 {
			end = len(rest)
		}
		term := rest[:end]
		rest = rest[end:]
		if term == "" {
			return sum, recurgent.Fail("invalid_input", "a term of the equation is missing")
		}
		last := term[len(term)-1]
		if !unicode.IsLetter(rune(last)) {
			n, err := strconv.ParseFloat(term, 64)
			if err != nil {
				return sum, recurgent.Fail("invalid_input", "cannot read the term "+term)
			}
			sum.constant += sign * n
			continue
		}
		if *name != 0 && *name != last {
			return sum, recurgent.Fail("invalid_input", "the equation has more than one unknown")
		}
		*name = last
		factor := 1.0
		if digits := strings.TrimSuffix(term[:len(term)-1], "*"); digits != "" {
			n, err := strconv.ParseFloat(digits, 64)
			if err != nil {
				return sum, recurgent.Fail("invalid_input", "cannot read the term "+term)
			}
			factor = n
		}
		sum.factor += sign * factor
	}
	return sum, nil
}

func Run(call *recurgent.Call) (any, error) {
	text, ok := call.Arg(0, "equation").(string)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "solve needs an equation, such as 2x + 5 = 17")
	}
	left, right, found := strings.Cut(text, "=")
	if !found {
		return nil, recurgent.Fail("invalid_input", "an equation has two sides with = between them")
	}
	var name byte
	l, err := side(left, &name)
	if err != nil {
		return nil, err
	}
	r, err := side(right, &name)
	if err != nil {
		return nil, err
	}
	factor, constant := l.factor-r.factor, r.constant-l.constant
	if factor == 0 {
		return nil, recurgent.Fail("invalid_input", "the equation has no single solution")
	}
	return map[string]any{string(name): constant / factor}, nil
}
