package tool

import (
	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	sum := 0.0
	for i := range call.Args {
		n, ok := call.Args[i].(float64)
		if !ok {
			return nil, recurgent.Fail("invalid_input", "every argument of add must be a number")
		}
		sum += n
	}
	for _, name := range []string{"a", "b"} {
		if n, ok := call.Kwargs[name].(float64); ok {
			sum += n
		}
	}
	return sum, nil
}
