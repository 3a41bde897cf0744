//go:build ops

package console

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A method shows its program in colours, its interface and the answers that a correction changed. It is quarantined
// with a reason, released, pinned, approved and archived, and each is undone where that would do; where not, the audit
// trail says why.
func TestOpsMethod(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60, programNet70}}))
	s := d.Session("tax")
	first := d.Call(s, "net", 1000)
	d.Call(s, "net", 2000)
	d.Send("POST", "/v1/calls/"+first.CallID+"/verdict", rig.MustJSON(object{"verdict": "wrong", "expected": 700}),
		map[string]string{"Prefer": "wait=30"})
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/tools/tax/net")
	p.sees(".t-keyword:text-is('func')", ".t-string:has-text('invalid_input')",
		"table[aria-label=Parameters] tr:has-text('gross')")
	p.at("#/tools/tax/net?tab=generations")
	p.sees("nav[aria-label=Generations] a:has(strong:text-is('gen-1'))",
		"table[aria-label='Changed answers'] tr:has-text('(2000)'):has-text('1200'):has-text('1400')")

	// What it takes: what a list holds, and anything where the program names nothing.
	for name, code := range map[string]string{"sum": rig.Program(
		"\tsum := 0.0\n\tfor i := range call.Args {\n\t\tn, ok := call.Args[i].(float64)\n\t\tif !ok {\n\t\t\treturn nil, recurgent.Fail(\"invalid_input\", \"no number\")\n\t\t}\n\t\tsum += n\n\t}\n\treturn sum, nil"), "echo": rig.ProgEcho} {
		d.Do(200, "PUT", "/v1/tools/tax/methods/"+name, object{"code": code})
	}
	p.at("#/tools/tax/sum")
	p.sees("table[aria-label=Parameters] td:text-is('number[]')")
	p.at("#/tools/tax/echo")
	p.sees("text=It takes any arguments: its program does not name them.")
	p.lacks("text=It takes no parameters.")

	p.at("#/tools/tax/net")
	does := func(what, reason string) {
		t.Helper()
		p.click("main >> " + button(what))
		p.fill("dialog input", reason)
		p.click("dialog >> " + button(what))
		p.gone("dialog")
	}
	undoes := func() {
		t.Helper()
		p.click(".message >> " + button("Undo"))
		p.sees(".messages >> text=Undone.")
	}
	has := func(member string, want any) {
		t.Helper()
		if got := d.Artifact("tax", "net")[member]; got != want {
			t.Errorf("%s is %v, want %v", member, got, want)
		}
	}
	does("Quarantine", "a wrong rate")
	p.sees(".badge:text-is('quarantined')", "dt:text-is('Quarantined') + dd:text-is('a wrong rate')")
	has("quarantined", true)
	undoes()
	p.gone(".badge:text-is('quarantined')")
	has("quarantined", nil)
	does("Quarantine", "")
	does("Release", "it is right")
	p.gone(".badge:text-is('quarantined')")
	does("Pin", "for the audit")
	p.sees(".badge:text-is('pinned')", button("Unpin"))
	has("pinned", true)
	if at := p.do("evaluate", "document.activeElement.innerText"); at != "Unpin" {
		t.Errorf("after the dialog the focus is at %v, not at the button that opened it", at)
	}
	d.Policy(object{"approval_required": true})
	p.do("reload")
	does("Approve", "")
	p.sees(".badge:text-is('approved')")
	has("approved", true)

	does("Archive", "not needed")
	p.sees("h1:text-is('tax')", "text=Archive: done.")
	undoes()
	p.sees("h1:text-is('tax.net')", ".badge:text-is('pinned')")
	has("pinned", true)
	d.Do(204, "DELETE", rig.MethodPath("tax", "net")+"?reason=once+more", nil)
	d.Do(200, "POST", "/v1/maintenance/restore", object{"role": "tax", "method": "net"})
	d.Do(204, "DELETE", rig.MethodPath("tax", "net")+"?reason=for+good", nil)
	p.at("#/audit")
	p.sees("tr:has-text('not needed') .badge:text-is('undone')", "tr:has-text('a wrong rate') .badge:text-is('undone')",
		"tr:has-text('for good') >> "+button("Undo"))
	p.lacks("tr:has-text('once more') >> " + button("Undo"))
	p.click("tr:has-text('once more') >> a:text-is('not possible')")
	p.sees("dialog >> text=No undo: what it archived was restored since, and removed again.")
	p.accessible("Audit with what cannot be undone")
	p.click("dialog >> " + button("Close"))
	p.click("tr:has-text('for good') >> " + button("Undo"))
	p.click("dialog >> " + button("Undo"))
	p.sees("tr:has-text('for good') .badge:text-is('undone')")
	has("approved", true)
	p.clean()
}
