package tool

import (
	"slices"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	text, ok := call.Arg(0, "text").(string)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "text must be a string")
	}
	runes := []rune(text)
	slices.Reverse(runes)
	return string(runes), nil
}
