package tool

import (
	"strings"
	"unicode/utf8"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	text, ok := call.Arg(0, "text").(string)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "text must be a string")
	}
	return map[string]any{"words": len(strings.Fields(text)), "characters": utf8.RuneCountInString(text)}, nil
}
