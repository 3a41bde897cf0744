//go:build ops

package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Pages of a daemon that nobody has used say what there will be and what to do; errors say what to do about them, with
// the hint of the problem detail.
func TestOpsFreshDaemon(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{}))
	p := newBrowser(t).open(t, "one", d.URL, nil)
	for hash, title := range map[string]string{"#/live": "No calls yet.", "#/live?log=1": "No calls yet.",
		"#/tools": "No tools yet.", "#/inbox": "Nothing waits for a decision.", "#/sessions": "No sessions yet.",
		"#/usage": "Nothing was used in this time.", "#/audit": "Nobody has done anything yet."} {
		p.at(hash)
		p.sees("main .empty:has-text('"+title+"')", "main .empty > p >> nth=1")
	}
	p.at("#/live")
	command, _ := p.do("innerText", "main .empty pre").(string)
	if !strings.Contains(command, "--url "+d.URL+" calculator add 2 3") {
		t.Errorf("Live says how to make a call: %q", command)
	}
	p.click("a:text-is('start a session here')")
	p.sees("h1:has-text('New session')")
	for hash, path := range map[string]string{"#/audit?after=nowhere": "/v1/maintenance/audit?limit=50&after=nowhere",
		"#/tools?sort=nothing": "/v1/tools?sort=nothing"} {
		problem := d.Send("GET", path, nil, nil).Object(t)
		p.at(hash)
		p.sees(".failure")
		shown, _ := p.do("innerText", ".failure >> nth=0").(string)
		for _, part := range []string{"title", "hint", "code"} {
			if said, _ := problem[part].(string); said == "" || !strings.Contains(shown, said) {
				t.Errorf("%s shows\n%s\nwithout the %s %q", hash, shown, part, said)
			}
		}
		p.accessible(hash)
	}
	p.at("#/sessions/new")
	p.fill("label:has-text('Role') input", " ")
	p.click(button("Start"))
	p.sees("main form .failure .hint")
	p.clean()
}

// listed starts a daemon with n of everything that pages list: tools, calls of one session, sessions, answers that a
// person called wrong.
func listed(t *testing.T, m *rig.Model, n int) *rig.Daemon {
	d := rig.Start(t, m)
	d.Policy(map[string]any{"correction": "manual"})
	var first string
	for i := range n {
		role := fmt.Sprintf("tool_%d", i)
		s := d.Session(role)
		if first == "" {
			first = s
		}
		r := d.Invoke(first, map[string]any{"role": role, "method": "net", "args": []any{1000 + i}})
		d.Do(200, "POST", "/v1/calls/"+r.CallID+"/verdict", map[string]any{"verdict": "wrong", "expected": 700,
			"note": "70 percent"})
	}
	return d
}

// Every page is reached and worked by the keyboard alone; back leads to where one was, and what an address shows it
// shows after a reload.
func TestOpsKeyboardEverywhere(t *testing.T) {
	d := listed(t, rig.NewModel(t, rig.Script{"tool_0.net": {programNet60}, "tool_1.net": {programNet60},
		"tool_2.net": {programNet60}}), 3)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/system")
	hash := func() string {
		s, _ := p.do("evaluate", "location.hash").(string)
		return s
	}
	press := func(keys ...string) {
		for _, k := range keys {
			p.do("press", "body", k)
		}
	}
	for _, page := range []struct{ letter, name, opens string }{
		{"l", "Live", "tool_"}, {"t", "Tools", "tool_0"}, {"i", "Inbox", "tool_"}, {"s", "Sessions", "tool_2"},
		{"u", "Usage", "tool_"}, {"p", "Policy", ""}, {"a", "Audit", "dialog"}, {"y", "System", ""},
	} {
		press("g", page.letter)
		p.sees("h1:text-is('"+page.name+"'):focus", "nav.pages a[aria-current=page]:text-is('"+page.name+"')")
		p.settled()
		at := hash()
		press("?")
		p.sees("dialog:has-text('next row, previous row')")
		p.do("press", "dialog", "Escape")
		p.gone("dialog")
		if searches, _ := p.do("isVisible", "main [data-search]").(bool); searches {
			press("/")
			if in, _ := p.do("evaluate", "document.activeElement.hasAttribute('data-search')").(bool); !in {
				t.Errorf("%s: / does not lead to the search", page.name)
			}
			p.do("press", "[data-search]", "Escape")
		}
		if page.opens == "" {
			continue
		}
		p.sees("main [data-row]")
		press("j", "j", "k")
		if row, _ := p.do("evaluate",
			"[...document.querySelectorAll('main [data-row]')].indexOf(document.activeElement)").(float64); row != 0 {
			t.Errorf("%s: j, j, k lead to row %v", page.name, row)
		}
		press("Enter")
		if page.opens == "dialog" {
			p.sees("dialog[open]")
			p.do("press", "dialog", "Escape")
			p.gone("dialog")
			continue
		}
		p.sees("h1:has-text('" + page.opens + "')")
		p.settled()
		opened, title := hash(), p.do("innerText", "h1")
		p.do("reload")
		p.sees("h1:has-text('" + page.opens + "')")
		p.settled()
		if hash() != opened || p.do("innerText", "h1") != title {
			t.Errorf("%s: after a reload the page is %v at %s, was %v at %s", page.name, p.do("innerText", "h1"),
				hash(), title, opened)
		}
		p.do("goBack")
		p.sees("h1:text-is('" + page.name + "')")
		if hash() != at {
			t.Errorf("back from %s leads to %s, not to %s", opened, hash(), at)
		}
	}
	p.do("setViewportSize", map[string]any{"width": 1280, "height": 140})
	p.at("#/tools")
	p.sees("tbody tr:nth-child(3)")
	press("j", "j", "j", "k", "k")
	if hidden, _ := p.do("evaluate",
		"document.querySelector('.bar').getBoundingClientRect().bottom - document.activeElement.getBoundingClientRect().top").(float64); hidden > 0 {
		t.Errorf("the row that k led to is %v pixels behind the bar", hidden)
	}
	p.do("setViewportSize", map[string]any{"width": 1280, "height": 720})
	// What one chose in a page is in its address.
	p.at("#/tools?q=tool_1")
	p.sees("tbody tr >> text=tool_1")
	p.lacks("tbody tr >> text=tool_2")
	p.do("selectOption", "label:has-text('Order') select", "used")
	p.sees("tbody tr")
	p.do("reload")
	p.sees("tbody tr >> text=tool_1")
	if h := hash(); !strings.Contains(h, "sort=used") || !strings.Contains(h, "q=tool_1") {
		t.Errorf("the address %s has not what was chosen", h)
	}
	p.clean()
}

// A page that is open shows what comes of a correction, without a reload. A call that was erased with its session is
// not offered for judging. Where the browser has no clipboard for pages, as over http from elsewhere, copying works all
// the same.
func TestOpsCorrectionArrives(t *testing.T) {
	m := rig.NewModel(t, rig.Script{"tax.net": {programNet60, rig.Held(programNet70)}})
	d := rig.Start(t, m)
	net := d.Call(d.Session("tax"), "net", 1000)
	d.Do(200, "POST", "/v1/calls/"+net.CallID+"/verdict", map[string]any{"verdict": "wrong", "expected": 700})
	p := newBrowser(t).open(t, "one", d.URL,
		map[string]any{"permissions": []string{"clipboard-read", "clipboard-write"}})
	p.at("#/calls/" + net.CallID)
	p.sees("section:has-text('Verdict') .badge:text-matches('running|queued')")
	m.Release()
	p.sees("section:has-text('Verdict') .badge:text-is('adopted')", "section:has-text('Verdict') a:text-is('gen-2')")

	gone := d.Call(d.Session("tax"), "net", 2000)
	d.Do(204, "DELETE", "/v1/sessions/"+gone.SessionID, nil)
	other := p.b.open(t, "two", d.URL, nil)
	other.at("#/calls/" + gone.CallID)
	other.sees("h1:has-text('tax.net(…)')", "text=They were erased together with the session.",
		"text=This call cannot be judged: its value is no longer kept.")
	other.lacks("main >> " + button("Right"))
	other.at("#/live")
	other.sees("td:has-text('tax.net(…)')", "td:has-text('tax.net(1000)')")
	other.clean()

	p.do("evaluate", "globalThis.real = navigator.clipboard; Object.defineProperty(navigator, 'clipboard', { value: undefined })")
	p.click(button("Copy as curl"))
	p.sees(".messages >> text=Copied")
	if got, _ := p.do("evaluate", "real.readText()").(string); !strings.HasSuffix(got, "/v1/calls/"+net.CallID) {
		t.Errorf("copied %q", got)
	}
	p.clean()
}

// A tab beside another one of the same browser shows what is done there without getting the focus.
func TestOpsSideBySide(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	d.Call(d.Session("tax"), "net", 1000)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	other := p.another("two")
	other.at("#/tools/tax/net")
	other.sees(button("Pin"))
	p.at("#/tools/tax/net")
	p.do("press", button("Pin"), "Enter")
	p.fill("dialog input", "seen elsewhere")
	p.do("press", "dialog input", "Enter")
	other.sees(button("Unpin"), ".badge:text-is('pinned')")
	other.at("#/audit")
	other.sees("tr:has-text('seen elsewhere')")
	p.gone("[aria-busy=true]") // until the undo of the first is found
	p.do("press", button("Unpin"), "Enter")
	p.fill("dialog input", "no more")
	p.do("press", "dialog input", "Enter")
	other.sees("tr:has-text('no more')")
	p.clean()
	other.clean()
}
