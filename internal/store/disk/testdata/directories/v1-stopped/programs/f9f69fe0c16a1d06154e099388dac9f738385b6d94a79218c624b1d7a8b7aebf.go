package tool

import (
	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	a, aok := call.Arg(0, "a").(float64)
	b, bok := call.Arg(1, "b").(float64)
	if !aok || !bok {
		return nil, recurgent.Fail("invalid_input", "two numbers are needed: a and b")
	}
	return a * b, nil
}
