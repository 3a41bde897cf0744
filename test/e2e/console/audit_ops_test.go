//go:build ops

package console

import (
	"fmt"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// pinBefore has the page pin the method right before it sends its next change of the policy.
const pinBefore = `{
	const send = window.fetch;
	window.fetch = async (to, o) => {
		if (o?.method === 'PATCH') await send('/v1/tools/tax/methods/net/pin', { method: 'POST', headers: { ...o.headers, 'Content-Type': 'application/json' }, body: '{}' });
		return send(to, o);
	};
}`

// The undo in the message after an operation is that of this operation, also where the same person did something else
// at the same time.
func TestOpsUndoInMessage(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	d.Call(d.Session("tax"), "net", 1000)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/policy")
	p.click(".switch:has-text('repair_enabled') input")
	p.do("evaluate", pinBefore)
	p.click(button("Change the policy"))
	p.click("dialog >> " + button("Change the policy"))
	p.click(".message >> " + button("Undo"))
	p.sees(".messages >> text=Undone.")
	if p, a := d.Get("/v1/policy"), d.Artifact("tax", "net"); p["repair_enabled"] != true || a["pinned"] != true {
		t.Errorf("after the undo repair_enabled is %v and pinned %v, want both", p["repair_enabled"], a["pinned"])
	}
	p.clean()
}

// An undone operation is marked on each page of the audit trail, wherever its undo stands, and no undo is offered that
// would be refused; an entry says why, and leads to the one that undid it.
func TestOpsAuditPages(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	d.Call(d.Session("tax"), "net", 1000)
	newest := func() string { return d.List("/v1/maintenance/audit")[0]["id"].(string) }
	d.Do(200, "POST", rig.MethodPath("tax", "net")+"/pin", object{"reason": "the first"})
	first := newest()
	d.Do(200, "POST", rig.MethodPath("tax", "net")+"/approve", object{"reason": "the second"})
	for i := range 61 {
		d.Policy(object{"spend": object{"day_tokens": 1_000_000 + i}})
	}
	d.Do(200, "POST", "/v1/maintenance/audit/"+first+"/undo", object{})
	undo := newest()

	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/audit")
	p.sees("tbody tr:has-text('undo') >> " + button("Undo"))
	p.click("a:has-text('Next page')")
	p.sees("tbody tr:has-text('the first') .badge:text-is('undone')",
		"tbody tr:has-text('the second') >> "+button("Undo"))
	p.lacks("tbody tr:has-text('the first') >> " + button("Undo"))
	p.lacks("tbody tr:has-text('policy') >> " + button("Undo")) // changed again since
	p.click("tbody tr:has-text('policy') >> nth=-1 >> a >> nth=0")
	p.sees("dialog >> text=No undo: spend.day_tokens was changed again since.",
		"dialog table.diff td.added:has-text('day_tokens')")
	p.accessible("Audit with an entry")
	p.click("dialog >> " + button("Close"))
	p.click("tbody tr:has-text('the first') a >> nth=0")
	p.click(fmt.Sprintf("dialog >> a:has-text('%s')", undo))
	p.sees(fmt.Sprintf("dialog >> text=It undid >> a:has-text('%s')", first))
	p.click("dialog >> " + button("Close"))
	p.click("tbody tr:has-text('the second') >> " + button("Undo"))
	p.click("dialog >> " + button("Undo"))
	p.sees("tbody tr:has-text('the second') .badge:text-is('undone')")
	p.at("#/audit?entry=" + first) // what somebody was sent
	p.sees("dialog >> text=It was undone")
	p.clean()
}
