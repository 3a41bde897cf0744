package tool

import (
	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	name, ok := call.Arg(0, "name").(string)
	if !ok || name == "" {
		name = "world"
	}
	return "Hello, " + name + "!", nil
}
