//go:build ops

package console

import (
	"fmt"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Where models have prices, pages show costs in their currency; a tool shows its health, its use, what it saved and its
// last failure; Usage draws each day and shows what is left of a cap and what is stored.
func TestOpsFigures(t *testing.T) {
	m := rig.NewModel(t, rig.Script{"tax.net": {programNet60}, "shop.sell": {rig.Program("\treturn 1, nil")}})
	d := rig.Start(t, m, "--model-prices", rig.WriteFile(t, "prices",
		"currency: EUR\nmodels:\n  scripted: {input: 20000, output: 80000}\n"))
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
		p.sees(fmt.Sprintf("%s >> td:text-is('%.4f')", row, usage["cost"]),
			fmt.Sprintf("%s >> td:text-is('%v request%s')", row, usage["saved_requests"],
				plural(usage["saved_requests"])), fmt.Sprintf("%s >> td:text-is('%v')", row, tool["usage_count"]))
	}
	p.sees("tr:has-text('tax') .badge:text-is('healthy')", "tr:has-text('tax') >> text=none",
		"tr:has-text('shop') >> td:has-text('sell, intrinsic')")
	p.at("#/calls/" + first.CallID)
	p.sees(".prose:has-text(' EUR.')")
	p.at("#/usage?by=method")
	p.sees("th:text-is('Cost, EUR')", "tr:has-text('tax.net')",
		"table[aria-label=Caps] tr:has-text('of 1,000,000') meter", "figure:has-text('Calls a day') canvas",
		"figure:has-text('Model requests a day') canvas", "figure:has-text('Cost a day, EUR') canvas",
		"table[aria-label=Stored] tr:has(td:text-is('local')) td:has-text('KiB')")
	for name, member := range map[string]string{"Cost": "cost", "Saved cost": "saved_cost"} {
		sum := 0.0
		for _, day := range d.Get("/v1/usage?by=day")["data"].([]any) {
			sum += day.(object)[member].(float64)
		}
		p.sees(fmt.Sprintf(".figure:has(span:text-is('%s')) strong:text-is('%.2f EUR')", name, sum))
	}
	p.accessible("Usage with a cap")
	p.clean()
}

// Costs of less than one are drawn as high as others.
func TestOpsSmallCosts(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}), "--model-prices",
		rig.WriteFile(t, "prices", "currency: EUR\nmodels:\n  scripted: {input: 20, output: 80}\n"))
	d.Call(d.Session("tax"), "net", 1000)
	p := newBrowser(t).open(t, "one", d.URL, object{"colorScheme": "light"})
	p.at("#/usage")
	p.sees("figure:has-text('Cost a day, EUR') div[aria-label^='Cost a day, EUR: cost 0.0006'] canvas")
	rig.Until(t, "bar of the day's cost", func() bool {
		high, _ := p.do("evaluate", `(() => {
			const c = document.querySelector('[aria-label^="Cost a day"] canvas');
			const all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
			const rows = new Set();
			for (let i = 0; i < all.length; i += 4) if (all[i] === 0x5b && all[i + 1] === 0x90 && all[i + 2] === 0xde) rows.add(Math.floor(i / 4 / c.width));
			return rows.size / c.height;
		})()`).(float64)
		return high > 0.4
	})
	p.clean()
}

// A call that its program answered with an error of its own counts as neither ok nor failed: pages say how many there
// are.
func TestOpsReturnedErrors(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	s := d.Session("tax")
	d.Call(s, "net", 1000)
	for range 2 {
		d.WantError(d.Call(s, "net", "much"), "invalid_input")
	}
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/tools/tax")
	for title, n := range map[string]int{"Calls ok": 1, "Failed": 0, "Returned an error": 2} {
		p.sees(fmt.Sprintf("tr:has-text('net') td[data-label='%s']:has-text('%d')", title, n))
	}
	const words = "1 ok, 0 failed, 2 answered with an error that the program returned"
	p.at("#/tools/tax/net")
	p.sees("dt:text-is('Calls') + dd:has-text('" + words + "; of the recent ones')")
	p.at("#/tools/tax/net?tab=generations")
	p.sees("dt:text-is('Calls') + dd:has-text('" + words + "')")
	p.clean()
}

// An error with which the daemon gave up is not the program's answer, and nobody may call it right.
func TestOpsGaveUp(t *testing.T) {
	picky := rig.Program("\tif _, ok := call.Kwargs[\"f\"]; !ok {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"f is missing\")\n\t}\n\treturn 1, nil")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"units.to_celsius": {picky, picky, picky}}))
	got := d.CallWith(d.Session("units"), "to_celsius", object{"fahrenheit": 100})
	d.WantError(got, "invalid_input")
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/calls/" + got.CallID)
	p.sees("p:has-text('The daemon gave up after several attempts. The last one failed with: f is missing')")
	p.sees("button:has-text('Wrong')")
	p.lacks("button:text-is('Right')")
	p.lacks("p:has-text('The program returned this error')")
	p.clean()
}

// A dialog says what an operation leads to before it says what is sent, each switch of the policy has a caption, and a
// session's history fits its column.
func TestOpsSaysWhatFollows(t *testing.T) {
	long := rig.Program("\treturn \"a text that is as long as a whole sentence, and then some more\", nil")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.words": {long}, "tax.net": {programNet60}}))
	s := d.Session("tax")
	d.Call(s, "words", "an argument that is long enough to need room of its own")
	d.Policy(object{"approval_required": true})
	d.WantError(d.Call(s, "net", 1000), "denied")
	p := newBrowser(t).open(t, "one", d.URL, object{"viewport": object{"width": 1280, "height": 900}})
	p.at("#/inbox")
	p.sees("text=waits for approval: it is the first program of its method")
	p.click("button:has-text('Approve the program')")
	p.sees("dialog p:has-text('gen-1 may answer calls from then on. This sends POST')")
	p.at("#/policy")
	p.sees(".switch:has-text('storage'):has-text('The part of what may be stored that one owner may use')")
	p.at("#/sessions/" + s)
	p.sees("table[aria-label='History'] time")
	if over, _ := p.do("evaluate", `(() => {
			const s = document.querySelector('table[aria-label="History"]').closest('.scroll');
			return s.scrollWidth - s.clientWidth;
		})()`).(float64); over > 0 {
		t.Errorf("the history is %v pixels wider than its column", over)
	}
	p.clean()
}

func plural(n any) string {
	if n == 1.0 {
		return ""
	}
	return "s"
}
