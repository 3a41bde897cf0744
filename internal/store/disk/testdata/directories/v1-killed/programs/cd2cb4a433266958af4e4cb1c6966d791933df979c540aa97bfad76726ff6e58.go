package tool

import (
	"strings"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	name, ok := call.Arg(0, "name").(string)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "initials needs a name")
	}
	initials := ""
	for _, word := range strings.Split(name, " ") {
		initials += strings.ToUpper(word[:1])
	}
	return initials, nil
}
