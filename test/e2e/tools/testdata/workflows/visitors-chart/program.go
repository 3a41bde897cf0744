package tool

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	days, ok := call.Arg(0, "days").(map[string]any)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "days must be an object of numbers by day")
	}
	names := slices.Sorted(maps.Keys(days))
	highest := 0.0
	for _, name := range names {
		n, ok := days[name].(float64)
		if !ok || n < 0 {
			return nil, recurgent.Fail("invalid_input", "the visitors of "+name+" must be a number from 0")
		}
		highest = max(highest, n)
	}
	f, err := call.Create("besucher.svg", "image/svg+xml")
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(f, `<svg xmlns="http://www.w3.org/2000/svg" width="400" height="100" viewBox="0 0 400 100">`)
	step := 400 / float64(max(1, len(names)))
	for i, name := range names {
		height := 0.0
		if highest > 0 {
			height = days[name].(float64) / highest * 100
		}
		fmt.Fprintf(f, `<rect x="%g" y="%g" width="%g" height="%g" fill="steelblue"><title>`, float64(i)*step, 100-height, max(1, step-2), height)
		if err := xml.EscapeText(f, []byte(name)); err != nil {
			return nil, err
		}
		fmt.Fprintln(f, "</title></rect>")
	}
	fmt.Fprintln(f, "</svg>")
	if err := f.Close(); err != nil {
		return nil, err
	}
	return map[string]any{"chart": f.Ref(), "highest": highest}, nil
}
