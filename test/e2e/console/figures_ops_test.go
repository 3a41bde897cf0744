//go:build ops

package console

import (
	"fmt"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Where models have prices, pages show costs in their currency; a tool shows its health, its use, what it saved and its last failure; Usage draws each day and shows what is left of a cap.
func TestOpsFigures(t *testing.T) {
	m := rig.NewModel(t, rig.Script{"tax.net": {programNet60}, "shop.sell": {rig.Program("\treturn 1, nil")}})
	d := rig.Start(t, m, "--model-prices", rig.WriteFile(t, "prices", "currency: EUR\nmodels:\n  scripted: {input: 20000, output: 80000}\n"))
	d.Policy(object{"repair_enabled": false, "spend": object{"day_tokens": 1000000}})
	s := d.Session("tax")
	first := d.Call(s, "net", 1000)
	d.Call(s, "net", 2000)
	d.Call(d.Session("shop"), "sell")
	d.Do(200, "PUT", rig.MethodPath("shop", "sell"), object{"code": rig.Program("\tpanic(\"sold out\")")})
	d.Call(d.Session("shop"), "sell")

	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/tools?sort=cost")
	p.sees("th:text-is('Cost in EUR, 30 days')")
	for _, tool := range d.List("/v1/tools") {
		row := fmt.Sprintf("tbody tr:has(a:text-is('%v'))", tool["role"])
		usage := tool["usage"].(object)
		p.sees(fmt.Sprintf("%s >> td:text-is('%.4f')", row, usage["cost"]), fmt.Sprintf("%s >> td:text-is('%v request%s')", row, usage["saved_requests"], plural(usage["saved_requests"])), fmt.Sprintf("%s >> td:text-is('%v')", row, tool["usage_count"]))
	}
	p.sees("tr:has-text('tax') .badge:text-is('healthy')", "tr:has-text('tax') >> text=none", "tr:has-text('shop') >> td:has-text('sell, intrinsic')")
	p.at("#/calls/" + first.CallID)
	p.sees(".prose:has-text(' EUR.')")
	p.at("#/usage?by=method")
	p.sees("th:text-is('Cost, EUR')", "tr:has-text('tax.net')", "table[aria-label=Caps] tr:has-text('of 1,000,000') meter", "figure:has-text('Calls a day') canvas", "figure:has-text('Model requests a day') canvas", "figure:has-text('Cost a day, EUR') canvas")
	p.accessible("Usage with a cap")
	p.clean()
}

func plural(n any) string {
	if n == 1.0 {
		return ""
	}
	return "s"
}
