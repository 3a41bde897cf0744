//go:build ops

package console

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// holding has the page send what changes something only once release() is called.
const holding = `{
	const send = window.fetch;
	window.sent = 0;
	window.fetch = async (to, o) => {
		if (o?.method && o.method !== 'GET') {
			window.sent++;
			await new Promise((done) => (window.release = done));
		}
		return send(to, o);
	};
}`

// Buttons keep the focus while their request is under way and send it once, however often one presses them; what is
// taken from the page leaves the focus at the heading around it.
func TestOpsFocusStays(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60, programNet70}}))
	s := d.Session("tax")
	net := d.Call(s, "net", 1000)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	at := func(want string) {
		t.Helper()
		if got := p.do("evaluate", "document.activeElement.innerText"); got != want {
			t.Errorf("the focus is at %q, want %q", got, want)
		}
	}
	presses := func(name string) {
		t.Helper()
		p.do("evaluate", holding)
		p.do("focus", button(name))
		for range 3 {
			p.do("press", "body", "Enter") // whatever has the focus
			p.sees("button[aria-busy=true][aria-disabled=true]:text-is('" + name + "')")
			at(name)
		}
		if sent, _ := p.do("evaluate", "sent").(float64); sent != 1 {
			t.Errorf("%s was sent %v times", name, sent)
		}
		p.do("evaluate", "release()")
		p.gone("[aria-busy=true]")
	}

	p.at("#/sessions/" + s)
	p.fill("label:has-text('Method') input", "net")
	p.fill("label:has-text('Arguments') input", "1000")
	presses("Call")
	p.sees(".reply .badge:text-is('ok')")
	at("Call")

	p.at("#/tools/tax/net?tab=try")
	p.fill("label:has-text('gross') input", "10")
	presses("Run")
	p.sees("h2:text-is('Result')")
	at("Run")

	p.at("#/tools/tax/net?tab=examples")
	p.do("press", button("Add"), "Enter")
	p.sees("textarea[aria-label='Input 1']:focus") // the new row
	p.fill("textarea[aria-label='Input 1']", "[0]")
	p.fill("textarea[aria-label='Expected 1']", "0")
	presses("Save")
	p.sees("text=The examples are saved.")
	at("Save")
	p.sees("button[aria-disabled=true]:text-is('Save')") // once the examples are there again
	p.do("press", button("Save"), "Enter")
	p.do("press", button("Remove example 1"), "Enter")
	at("Examples")
	if sent, _ := p.do("evaluate", "sent").(float64); sent != 1 {
		t.Error("Save sent what was saved already")
	}

	p.at("#/calls/" + net.CallID)
	p.click(button("Wrong …"))
	p.do("type", "form textarea", "700")
	presses("Judge wrong")
	p.sees("section:has-text('Verdict') .badge:text-is('adopted')")
	p.gone("form textarea")
	at("Verdict")
	p.do("press", button("Withdraw"), "Enter")
	p.do("evaluate", "release()")
	p.gone(button("Withdraw"))
	at("Verdict")

	p.at("#/policy")
	p.click(".switch:has-text('repair_enabled') input")
	p.do("press", button("Discard"), "Enter")
	p.gone(button("Discard"))
	at("Policy")

	p.at("#/sessions/new")
	presses("Start")
	p.sees("h1:text-is('calculator')")
	at("calculator")
	p.clean()
}
