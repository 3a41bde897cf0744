//go:build ops

package console

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The pages work in Firefox as well: each shows its subject, a call is followed, made with a file and judged, a program
// is approved, and hostile pages and drawings run nothing and load nothing.
func TestOpsFirefox(t *testing.T) {
	m := rig.NewModel(t, rig.Script{"tax.net": {programNet60, programNet70}})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	s, outside := d.Session("tax"), watch(t)
	d.WantValue(d.Call(s, "net", 1000), 600.0, "generated")
	p := newBrowserOf(t, "firefox-esr").open(t, "one", d.URL, nil)
	for _, hash := range []string{"#/live", "#/live?log=1", "#/tools", "#/tools/tax", "#/tools/tax/net",
		"#/tools/tax/net?tab=generations", "#/tools/tax/net?tab=examples", "#/tools/tax/net?tab=try",
		"#/tools/tax/net?tab=effects",
		"#/tools/tax/net?tab=calls", "#/inbox", "#/sessions", "#/sessions/" + s, "#/usage", "#/policy", "#/audit",
		"#/system"} {
		p.at(hash)
		p.settled()
		p.lacks("main .failure")
		p.clean()
	}
	p.at("#/live")
	p.sees("text=Following", "tr:has-text('tax.net') code.value:text-is('600')")
	d.Call(s, "net", 2000)
	p.sees("tr:has-text('tax.net') code.value:text-is('1200')")

	p.at("#/sessions/" + s)
	p.fill("label:has-text('Method') input", "show")
	p.do("setInputFiles", "form.talk input[type=file]", rig.WriteFile(t, "report.html", pageAt(outside)))
	p.until("document.querySelector('label.grow input').value.startsWith('{\"$file\":\"file_')")
	p.click(button("Call"))
	p.sees(".reply iframe >> internal:control=enter-frame >> h1:text-is('Quarterly report')")
	drawn := d.Call(s, "show", stored(d, s, "chart.svg", "image/svg+xml", drawingAt(outside)))
	p.at("#/calls/" + drawn.CallID)
	p.until("document.querySelector('section img')?.naturalWidth === 60")
	p.faultless()

	call := d.Call(s, "net", 10)
	p.at("#/calls/" + call.CallID)
	p.click(button("Wrong …"))
	p.fill("form textarea", "7")
	p.click(button("Judge wrong"))
	p.sees(".badge:text-is('adopted')")
	p.click("a:text-is('gen-2')")
	p.sees("table.diff td.added:has-text('0.7')")
	p.do("press", "body", "g")
	p.do("press", "body", "t")
	p.sees("h1:has-text('Tools'):focus")

	d.Policy(object{"approval_required": true})
	d.WantError(d.Call(s, "waits", 1), "denied")
	p.at("#/inbox?kind=approval")
	entry := "ul.entries > li:has-text('tax.waits')"
	p.click(entry + " >> summary")
	p.sees(entry + " >> pre:has-text('package tool')")
	p.click("role=checkbox[name='Select tax.waits']")
	p.click(button("Approve 1"))
	p.fill("dialog input", "read it")
	p.click("dialog >> " + button("Approve"))
	p.sees(".messages >> text=1 program approved")
	p.gone(entry)
	if got := d.Call(s, "waits", 1); !got.Outcome.OK {
		t.Errorf("the approved program: %+v", got.Outcome)
	}
	p.clean()
	if n := outside.asked.Load(); n > 0 {
		t.Errorf("%d connections were made to where the page and the drawing point", n)
	}
}
