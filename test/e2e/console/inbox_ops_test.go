//go:build ops

package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

type object = map[string]any

// signIn gives the tab a token.
func (p *page) signIn(token string) {
	p.t.Helper()
	p.at("#/live")
	p.fill("input[type=password]", token)
	p.click(button("Sign in"))
	p.sees("h1:has-text('Live')")
}

// Each kind of what waits comes with its evidence, and is decided by its first button: the server does what the button
// says, and the entry goes away.
func TestOpsInbox(t *testing.T) {
	const eves, cals = "0123456789abcdef-eve", "0123456789abcdef-cal"
	reaches := rig.Program("\t_ = \"https://evil.example.org/x\"\n\treturn 1, nil")
	m := rig.NewModel(t, rig.Script{"tax.net": {programNet60}, "echo.m": {rig.ProgEcho},
		"movies.find": {rig.ProgMoviesWeak},
		"office.gather": {rig.Program(
			"\tcall.Delegate(\"cinema\", recurgent.Contract{Deliverable: map[string]any{\"type\": \"array\", \"min_items\": 1}})\n\treturn call.Args, nil")}})
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		"eve "+eves+"\ncal "+cals+" scopes=read,call\n"))
	eve, cal := d.As(eves), d.As(cals)
	p := newBrowser(t).open(t, "eve", d.URL, nil)
	p.signIn(eves)
	open := func(kind string, evidence ...string) {
		t.Helper()
		p.at("#/inbox?kind=" + kind)
		for _, e := range evidence {
			p.sees("ul.entries > li:has-text('" + e + "')")
		}
	}
	decide := func(kind, what string, evidence ...string) {
		t.Helper()
		open(kind, evidence...)
		entry := "ul.entries > li:has-text('echo.m')"
		p.click(entry + " >> " + button(what))
		p.click("dialog >> " + button(what))
		p.gone(entry)
	}

	// A correction that no program holds, tried until it is left to people.
	eve.Policy(object{"backoff": object{"base_seconds": 1, "max_seconds": 1}})
	net := eve.Call(eve.Session("tax"), "net", 1000)
	eve.Do(200, "POST", "/v1/calls/"+net.CallID+"/verdict", object{"verdict": "wrong", "expected": 700,
		"note": "70 percent"})

	// A proposal of somebody who may not operate.
	s := cal.Session("echo")
	right := cal.Call(s, "m", 1)
	cal.Do(200, "POST", "/v1/calls/"+right.CallID+"/verdict", object{"verdict": "right"})
	decide("proposal", "Accept the example", "echo.m", "(1)", "by cal")
	if list := eve.Get(rig.MethodPath("echo", "m") +
		"/examples")["examples"].([]any); len(list) != 1 || list[0].(object)["state"] != "active" {
		t.Errorf("after the proposal was accepted: %v", list)
	}

	// A contract that a program proposed.
	eve.Do(201, "PUT", "/v1/tools/cinema", object{"purpose": "movies", "deliverable": object{"type": "array"}})
	eve.Call(eve.Session("office"), "gather")
	open("proposal", "cinema", "office.gather", "min_items", "a call of eve")
	p.click("ul.entries > li:has-text('cinema') >> " + button("Accept the contract"))
	p.click("dialog >> " + button("Accept the contract"))
	p.gone("ul.entries > li:has-text('cinema')")
	if tool := eve.Get("/v1/tools/cinema"); !rig.Equal(object{"type": "array", "min_items": 1.0}, tool["deliverable"]) {
		t.Errorf("after the contract was accepted: %v", tool)
	}

	// Effects that are new.
	eve.Do(200, "PUT", rig.MethodPath("echo", "m"), object{"code": reaches})
	decide("effects", "Approve the effects", "gen-2", "after gen-1", "evil.example.org")
	if e := eve.Get(rig.MethodPath("echo", "m") +
		"/effects"); e["origin"] != "approved" || !rig.Equal([]any{"evil.example.org"}, e["hosts"]) {
		t.Errorf("after the effects were allowed: %v", e)
	}

	// A program that waits for approval.
	eve.Do(200, "POST", rig.MethodPath("echo", "m")+"/regenerate", object{})
	eve.Policy(object{"approval_required": true})
	cal.Call(s, "m", 1)
	decide("approval", "Approve the program", "echo.m", "gen-3", "after gen-2", "any arguments")
	if a := eve.Artifact("echo", "m"); a["approved"] != true || a["current_generation"] != "gen-3" {
		t.Errorf("after the approval gen-3 is not approved: %v, %v", a["current_generation"], a["approved"])
	}
	eve.Policy(object{"approval_required": false, "recommendations": object{"min_evidence": 1, "weak_rate": 0.1,
		"corrections": 1}})

	// A recommendation, one after the other.
	eve.Do(201, "PUT", "/v1/tools/movies", object{"deliverable": object{"type": "object", "required": []any{"movies"}}})
	for range 4 {
		cal.Call(cal.Session("movies"), "find", "anything")
	}
	movies := func(status string) (of []object) {
		return slices.DeleteFunc(eve.Recommendations("?status="+status),
			func(a object) bool { return a["role"] != "movies" })
	}
	advice := movies("open")
	if len(advice) == 0 {
		t.Fatal("there is no recommendation")
	}
	open("recommendation", "movies", advice[0]["evidence"].([]any)[0].(string))
	for i := range advice {
		p.click("ul.entries > li:has-text('movies') >> nth=0 >> " + button("Apply the recommendation"))
		p.click("dialog >> " + button("Apply the recommendation"))
		p.gone(fmt.Sprintf("ul.entries > li:has-text('movies') >> nth=%d", len(advice)-1-i))
	}
	if got := movies("applied"); len(got) != len(advice) {
		t.Errorf("%d recommendations are applied, want %d", len(got), len(advice))
	}

	// The correction is left to people by now.
	rig.Until(t, "the correction has failed", func() bool {
		return eve.Artifact("tax", "net")["correction"].(object)["state"] == "failed"
	})
	m.Answer("tax", "net", openaitest.Code(programNet70))
	open("correction", "the model could not correct the program", "net(1000)", "answered 600, expected 700",
		"70 percent", "failed")
	p.accessible("Inbox")
	p.click("ul.entries > li >> " + button("Write a new program at the next call"))
	p.click("dialog >> " + button("Write a new program at the next call"))
	p.sees(".messages >> text=done")
	eve.WantValue(eve.Call(eve.Session("tax"), "net", 1000), 700.0, "generated")
	p.at("#/inbox?kind=correction")
	p.sees("text=Nothing of this kind waits.")
	if n := strings.Count(string(eve.Do(200, "GET", "/v1/maintenance/audit?principal=eve&format=jsonl", nil).Body),
		"\n"); n < 5+len(advice) {
		t.Errorf("the audit trail has %d operations of eve's", n)
	}
	p.clean()
}

// Who may decide sees in the bar how much waits, as it changes. Whoever proposed a verdict, with an expectation or
// without one, may withdraw it, in the inbox and at the call; to decide they are not offered.
func TestOpsWithdraw(t *testing.T) {
	const eves, cals = "0123456789abcdef-eve", "0123456789abcdef-cal"
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}), "--auth-tokens-file",
		rig.WriteFile(t, "tokens", "eve "+eves+" scopes=read,operate\ncal "+cals+" scopes=read,call\n"))
	cal := d.As(cals)
	call := cal.Call(cal.Session("tax"), "net", 1000)
	b := newBrowser(t)
	bar, proposer := b.open(t, "eve", d.URL, nil), b.open(t, "cal", d.URL, nil)
	bar.signIn(eves)
	proposer.signIn(cals)
	const waiting = "nav a:has-text('Inbox') .badge"
	propose := func(expected string) {
		t.Helper()
		proposer.at("#/calls/" + call.CallID)
		proposer.click(button("Wrong …"))
		proposer.fill("form textarea", expected)
		proposer.click(button("Judge wrong"))
		proposer.sees("text=It is a proposal")
		bar.sees(waiting + ":text-is('1')")
	}
	gone := func(p *page, selector string) {
		t.Helper()
		p.do("waitForSelector", selector, object{"state": "detached"})
	}
	for _, expected := range []string{"", "700"} {
		propose(expected)
		proposer.click(button("Withdraw"))
		gone(proposer, "text=It is a proposal")
		gone(bar, waiting)
		propose(expected)
		proposer.at("#/inbox")
		proposer.sees("ul.entries > li:has-text('tax.net')")
		proposer.lacks(waiting)
		for _, decision := range []string{"Confirm the verdict", "Accept the example", "Reject the example"} {
			proposer.lacks(button(decision))
		}
		proposer.click(button("Withdraw the proposal"))
		proposer.click("dialog >> " + button("Withdraw the proposal"))
		proposer.sees("text=Nothing waits for a decision.")
		gone(bar, waiting)
	}
	propose("")
	bar.at("#/inbox")
	bar.sees("ul.entries > li:has-text('proposed the verdict wrong')")
	bar.lacks(button("Withdraw the proposal")) // it takes call, too
	bar.lacks(button("Confirm the verdict"))
	bar.accessible("Inbox with a number")
	bar.clean()
	proposer.clean()
}

// Approvals show what the program does, how it is called, which hosts it names and its code, and are given for many at
// once: each is answered for itself, and all are taken back together.
func TestOpsApproveMany(t *testing.T) {
	named := rig.Program("\t_ = \"https://api.example.org/x\"\n\treturn call.Arg(0, \"gross\"), nil")
	m := rig.NewModel(t, rig.Script{"tax.net": {openaitest.Reply{Code: named,
		Declared: map[string]any{"summary": "what is left of a gross amount"}}}})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	d.Policy(object{"approval_required": true})
	s := d.Session("tax")
	for _, method := range []string{"net", "one", "two"} {
		d.WantError(d.Call(s, method, 1), "denied")
	}
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/inbox?kind=approval")
	entry := "ul.entries > li:has-text('tax.net')"
	p.sees(entry+" >> dt:text-is('What it does') + dd:text-is('what is left of a gross amount')",
		entry+" >> dd:has-text('api.example.org')", entry+" >> dt:text-is('Called as') + dd:has-text('net(')")
	p.click(entry + " >> summary")
	p.sees(entry + " >> pre:has-text('package tool')")
	p.accessible("Approvals")
	p.do("screenshot", map[string]any{"path": shots(t) + "/approvals.png", "fullPage": true})
	p.click("label:has-text('Select the 3 approvals')")
	p.click("role=checkbox[name='Select tax.two']")
	d.Do(204, "DELETE", rig.MethodPath("tax", "one")+"?reason=gone", nil) // meanwhile
	p.click(button("Approve 2"))
	p.fill("dialog input", "read them")
	p.click("dialog >> " + button("Approve"))
	p.sees("dialog li:has-text('tax.one') .wrong", ".messages >> text=1 program approved, 1 not.")
	p.lacks("dialog li:has-text('tax.net')")
	p.accessible("Approvals that failed")
	p.click("dialog >> " + button("Close"))
	if got := d.Call(s, "net", 5); !got.Outcome.OK {
		t.Errorf("the approved one: %+v", got.Outcome)
	}
	d.WantError(d.Call(s, "two", 5), "denied")
	p.click(".messages >> " + button("Undo"))
	p.sees(".messages >> text=Undone.", entry)
	d.WantError(d.Call(s, "net", 5), "denied")
	p.at("#/audit")
	p.sees("text=read them")
	p.clean()
}

// Before approval_required is switched on, the page says how many programs would wait, and approves those that are
// durable.
func TestOpsSwitchApprovalOn(t *testing.T) {
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	s := d.Session("r")
	for _, method := range []string{"old", "older", "young"} {
		d.Call(s, method, 1)
	}
	for _, method := range []string{"old", "older"} {
		d.Do(200, "POST", rig.MethodPath("r", method)+"/promote", object{})
	}
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/policy")
	p.click("label.switch:has-text('approval_required') input")
	p.sees("text=3 programs would wait for a person’s approval", "text=2 of them are durable.")
	p.accessible("Policy with approvals")
	p.click(button("Approve the 2 durable ones"))
	p.click("dialog >> " + button("Approve"))
	p.sees("text=1 program would wait for a person’s approval", "text=None of them is durable.")
	p.click(button("Change the policy"))
	p.click("dialog >> " + button("Change the policy"))
	p.gone(".unsaved")
	d.WantError(d.Call(s, "young", 2), "denied")
	for _, method := range []string{"old", "older"} {
		if got := d.Call(s, method, 2); !got.Outcome.OK {
			t.Errorf("%s: %+v", method, got.Outcome)
		}
	}
	p.clean()
}
