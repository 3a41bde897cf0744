//go:build ops

package console

import (
	"fmt"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// examples are those of the method that the daemon keeps, but for when they were made.
func examples(t *testing.T, d *rig.Daemon, role, method string) (all []object) {
	t.Helper()
	for _, x := range d.Get(rig.MethodPath(role, method) + "/examples")["examples"].([]any) {
		delete(x.(object), "created_at")
		all = append(all, x.(object))
	}
	return all
}

// Notes of examples are seen and written, on a phone too.
func TestOpsExampleNotes(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	d.Do(200, "PUT", rig.MethodPath("tax", "net")+"/examples",
		object{"examples": []object{{"args": []any{1000}, "expect": object{"value": 600}, "note": "60 percent"}}})
	p := newBrowser(t).open(t, "one", d.URL, object{"viewport": object{"width": 390, "height": 844}})
	p.at("#/tools/tax/net?tab=examples")
	p.sees("textarea[aria-label='Note 1']")
	if got := p.do("inputValue", "textarea[aria-label='Note 1']"); got != "60 percent" {
		t.Errorf("the note is %q", got)
	}
	p.fill("textarea[aria-label='Note 1']", "since 2026")
	p.click(button("Save"))
	p.sees("text=The examples are saved.")
	if all := examples(t, d, "tax", "net"); len(all) != 1 || all[0]["note"] != "since 2026" {
		t.Errorf("the examples are %v", all)
	}
	p.accessible("Examples with notes")
	p.clean()
}

// Saved examples take nothing away that somebody else has added since they were shown: it is shown beside what was
// typed, and both are kept.
func TestOpsExamplesOfTwo(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	path := rig.MethodPath("tax", "net") + "/examples"
	mine, theirs := object{"args": []any{1000}, "expect": object{"value": 600}},
		object{"args": []any{2000}, "expect": object{"value": 1200}}
	d.Do(200, "PUT", path, object{"examples": []object{mine}})
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/tools/tax/net?tab=examples")
	p.fill("textarea[aria-label='Note 1']", "60 percent")
	d.Do(200, "PUT", path, object{"examples": append(examples(t, d, "tax", "net"), theirs)})
	p.click(button("Save"))
	p.sees(".failure:has-text('precondition_failed')", "textarea[aria-label='Note 2']")
	if got := p.do("inputValue", "textarea[aria-label='Note 1']"); got != "60 percent" {
		t.Errorf("the note is %q", got)
	}
	p.click(button("Save"))
	p.sees("text=The examples are saved.")
	p.gone(".failure")
	if all := examples(t, d, "tax", "net"); len(all) != 2 || all[0]["note"] != "60 percent" {
		t.Errorf("the examples are %v", all)
	}
	p.clean()
}

// A change of examples is undone in the message after it, but for that of a judged call, which does not come back so,
// and not where somebody else has changed them since.
func TestOpsUndoOfExamples(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	call := d.Call(d.Session("tax"), "net", 1000)
	path := rig.MethodPath("tax", "net") + "/examples"
	d.Do(200, "PUT", path, object{"examples": []object{{"args": []any{2000}, "expect": object{"value": 1200},
		"note": "by hand", "tolerance": 0.5}}})
	d.Do(200, "POST", "/v1/calls/"+call.CallID+"/verdict", object{"verdict": "right"})
	before := examples(t, d, "tax", "net")
	want := func(what string, want []object) {
		t.Helper()
		if got := examples(t, d, "tax", "net"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %s the examples are\n%v, want\n%v", what, got, want)
		}
	}
	p := newBrowser(t).open(t, "one", d.URL, nil)
	remove := func(i string) {
		t.Helper()
		p.at("#/tools/tax/net?tab=examples")
		p.click(button("Remove example " + i))
		p.click(button("Save"))
		p.sees(".messages >> text=The examples are saved.")
	}
	remove("1")
	want("the removal", before[1:])
	p.click(".message >> " + button("Undo"))
	p.sees(".messages >> text=Undone.", "textarea[aria-label='Note 2']")
	want("the undo", before)

	remove("1")
	since := append([]object{{"args": []any{3000}, "expect": object{"value": 1800}}}, before[1:]...)
	d.Do(200, "PUT", path, object{"examples": since})
	since = examples(t, d, "tax", "net")
	p.click(".message >> " + button("Undo"))
	p.sees(".messages >> text=Not undone: the examples were changed since.")
	want("an undo that comes late", since)

	remove("2")
	p.sees(".messages >> text=comes back by judging the call again")
	p.lacks(".message >> " + button("Undo"))
	p.clean()
}

// A verdict that was withdrawn is given again by the undo in the message, unless the call was judged since.
func TestOpsUndoOfAWithdrawal(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	d.Policy(object{"correction": "manual"})
	call := d.Call(d.Session("tax"), "net", 1000)
	path := "/v1/calls/" + call.CallID + "/verdict"
	wrong := object{"verdict": "wrong", "expected": nil, "note": "70 percent"}
	d.Do(200, "POST", path, wrong)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	withdraw := func() {
		t.Helper()
		p.click(button("Withdraw"))
		p.gone(button("Withdraw"))
		d.Do(404, "GET", path, nil)
	}
	p.at("#/calls/" + call.CallID)
	withdraw()
	p.click(".message >> " + button("Undo"))
	p.sees(".messages >> text=Undone.", "section:has-text('Verdict') .badge:text-is('wrong')",
		"section:has-text('Verdict') >> text=“70 percent”")
	if v := d.Get(path); v["verdict"] != "wrong" || v["note"] != "70 percent" || v["state"] != "active" ||
		v["example_state"] != "active" {
		t.Errorf("after the undo the verdict is %v", v)
	}
	withdraw()
	d.Do(200, "POST", path, object{"verdict": "right"})
	p.click(".message >> " + button("Undo"))
	p.sees(".messages >> text=Not undone: the call was judged again since.")
	if v := d.Get(path); v["verdict"] != "right" {
		t.Errorf("the undo has replaced the verdict since: %v", v)
	}
	p.clean()
}
