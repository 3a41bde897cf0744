package tool

import (
	"fmt"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	items, ok := call.Arg(0, "items").([]any)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "items must be a list of {name, price, quantity}")
	}
	calculator := call.Tool("calculator")
	var amounts []any
	for i, item := range items {
		line, _ := item.(map[string]any)
		price, pok := line["price"].(float64)
		quantity, qok := line["quantity"].(float64)
		if !pok || !qok {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("item %d needs a price and a quantity", i+1))
		}
		amount := calculator.Call("multiply", price, quantity)
		if !amount.OK() {
			return nil, recurgent.Fail(amount.ErrorType, amount.ErrorMessage)
		}
		amounts = append(amounts, amount.Value)
	}
	total := calculator.Call("add", amounts...)
	if !total.OK() {
		return nil, recurgent.Fail(total.ErrorType, total.ErrorMessage)
	}
	return map[string]any{"lines": len(items), "total": total.Value}, nil
}
