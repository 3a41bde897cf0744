//go:build ops

package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The form of Try has what the interface says: choices, texts, JSON, what a missing argument stands for, and a field
// for what else the program takes. A program that was put in says that nobody used it yet.
func TestOpsTryForm(t *testing.T) {
	echo := rig.Program("\treturn map[string]any{\"mode\": call.Arg(0, \"mode\"), \"made\": call.Arg(1, \"constructor\"), \"city\": call.Arg(2, \"city\")}, nil")
	keys := rig.Program("\tn := 0\n\tfor range call.Kwargs {\n\t\tn++\n\t}\n\treturn map[string]any{\"keywords\": n}, nil")
	list := rig.Program("\treturn map[string]any{\"all\": call.Args}, nil")
	d := rig.Start(t, rig.NewModel(t, rig.Script{}))
	d.Do(200, "PUT", rig.MethodPath("odd", "echo"), object{"code": echo, "parameters": []any{
		object{"name": "mode", "required": true, "schema": object{"enum": []any{"net", "gross"}}},
		object{"name": "constructor", "type": "string", "required": false, "default": "nobody"},
		object{"name": "city", "required": false, "schema": object{"type": "string"}},
	}})
	d.Do(200, "PUT", rig.MethodPath("odd", "keys"), object{"code": keys})
	d.Do(200, "PUT", rig.MethodPath("odd", "list"), object{"code": list})
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/tools/odd/echo?tab=try")
	p.click(button("Run"))
	p.sees("text=mode is required", "label:has-text('constructor'):has-text('\"nobody\" if empty')")
	if made := p.do("inputValue", "label:has-text('constructor') input"); made != "" {
		t.Errorf("the field of constructor has %v", made)
	}
	p.do("selectOption", "label:has-text('mode') select", `"gross"`)
	p.fill("label:has-text('city') input", "Rom")
	p.click(button("Run"))
	p.sees(`section:has-text('Result') pre:has-text('"gross"'):has-text('"Rom"')`)
	p.at("#/tools/odd/keys?tab=try")
	p.fill("label:has-text('rguments') textarea", `{"a": 1, "b": 2}`)
	p.click(button("Run"))
	p.sees("section:has-text('Result') pre:has-text('\"keywords\": 2')")
	p.at("#/tools/odd/list?tab=try")
	p.fill("label:has-text('args') textarea", "[1, 1234567]")
	p.click(button("Run"))
	p.sees("section:has-text('Result') pre:has-text('1234567')")
	p.accessible("Try")
	p.at("#/tools/odd/list")
	p.sees("dt:text-is('Last used') + dd:text-is('never')")
	p.clean()
}

// Filters are seen, stay where one goes to older calls and back and while calls come, and hold for what was missed
// while Live was paused. A role may have dots. A page that has no frames, as one behind others, keeps up.
func TestOpsFiltersOfLive(t *testing.T) {
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m, "--listen", apptest.Address(t))
	dotted, plain := d.Session("acme.tax"), d.Session("acme")
	d.Call(dotted, "net", 1)
	d.Call(plain, "tax", 2)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/tools/acme.tax")
	p.click("a:text-is('Calls')")
	p.sees("tr:has-text('acme.tax.net')", "text=Following")
	p.lacks("tr:has-text('acme.tax(2)')")
	p.click("a:text-is('Older calls')")
	p.sees("h1:text-is('Call log')", "tr:has-text('acme.tax.net')")
	p.lacks("tr:has-text('acme.tax(2)')")
	p.do("goBack")
	p.sees("h1:text-is('Live')", "tr:has-text('acme.tax.net')")

	p.at("#/sessions/" + plain)
	p.click("a:text-is('Calls')")
	p.sees("h1:text-is('Call log')", "tr:has-text('acme.tax(2)')")
	p.lacks("tr:has-text('acme.tax.net')")
	if shown := p.do("inputValue", "label:has-text('Session') input"); shown != plain {
		t.Errorf("the filter shows the session %v, want %s", shown, plain)
	}
	p.click("a:text-is('Follow live')")
	p.sees("h1:text-is('Live')", "text=Following", "tr:has-text('acme.tax(2)')")
	p.lacks("tr:has-text('acme.tax.net')")
	const search = "input[type=search] >> nth=0"
	p.fill(search, "begun") // and not entered yet
	d.Call(plain, "tax", 5)
	p.sees("tr:has-text('acme.tax(5)')")
	if typed := p.do("inputValue", search); typed != "begun" {
		t.Errorf("after another call the field has %q", typed)
	}
	p.fill(search, "")

	p.click(button("Pause"))
	d.Call(plain, "tax", 3)
	p.sees("text=Paused, 1 new call")
	p.fill("label:has-text('Session') input", dotted)
	p.do("press", "label:has-text('Session') input", "Enter")
	p.sees("tr:has-text('acme.tax.net(1)')")
	p.click(button("Resume"))
	d.Call(dotted, "net", 4)
	p.sees("tr:has-text('acme.tax.net(4)')")
	p.lacks("tr:has-text('acme.tax(3)')")

	p.do("evaluate", "window.requestAnimationFrame = () => 1") // as for a page that nobody sees
	for i := range 200 {
		d.Call(dotted, "net", fmt.Sprintf("unseen %d", i))
	}
	p.sees("tr:has-text('unseen 100')")
	p.clean()
}

// A browser may have another clock, another zone and another language: ages are the daemon's, midnight is 00, and all
// figures have the same point. In high contrast bars stay bars. Values are shown as they are, and a program that is no
// longer kept is not taken for another one.
func TestOpsOddBrowserAndValues(t *testing.T) {
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	s := d.Session("odd")
	nul := d.Call(s, "m", "\x005")
	d.Call(s, "m", "😀")
	p := newBrowser(t).open(t, "one", d.URL, map[string]any{"locale": "de-DE", "timezoneId": "Asia/Kolkata",
		"forcedColors": "active"})
	p.do("addInitScript", map[string]any{"content": `{
		const Real = Date;
		globalThis.Date = class extends Real {
			constructor(...at) { at.length ? super(...at) : super(Date.now()); }
			static now() { return Real.now() - 3 * 3600e3; }
		};
	}`})
	p.at("#/sessions")
	p.sees("tr:has-text('odd') >> text=/just now|ago/")
	p.lacks("tr >> text=/^in [0-9]/")
	if figures := p.do("evaluate",
		"import(document.querySelector('script').src.replace('main.js', 'format.js')).then((f) => f.count(1234) + ', ' + f.duration(1234))"); figures != "1,234, 1.2 s" {
		t.Errorf("in German the page writes %v", figures)
	}
	p.at("#/calls/" + nul.CallID)
	p.sees("pre[aria-label=Value]")
	if shown, _ := p.do("innerText", "pre[aria-label=Value]").(string); !strings.Contains(shown, `"\u00005"`) {
		t.Errorf("a text that begins with NUL is shown as %s", shown)
	}
	if hidden, _ := p.do("evaluate",
		"(([a, b]) => getComputedStyle(a).backgroundColor === getComputedStyle(b).backgroundColor)(['.stage.gate', '.track'].map((s) => document.querySelector(s)))").(bool); hidden {
		t.Error("in high contrast the bars of the stages are not seen")
	}
	p.at("#/tools/odd/m?tab=generations&generation=gen-77")
	p.sees("[role=status]:has-text('gen-77 is not kept any more. This is gen-1.')")
	p.clean()
}

// The page reports a reply that a proxy or a broken connection damaged, with what to do. A token that no header can
// carry is refused at once, and whoever has one that fails can sign out.
func TestOpsBrokenReplies(t *testing.T) {
	const root, slow = "0123456789abcdef-root", "0123456789abcdef-slow"
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}), "--auth-tokens-file",
		rig.WriteFile(t, "tokens", "root "+root+"\nslow "+slow+" rate=0.001/s\n"))
	boss := d.As(root)
	d.As(slow).Get("/v1/me") // the one request that it has
	boss.Call(boss.Session("tax"), "net", 1000)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/tools")
	p.sees("h1:text-is('Sign in')")
	p.lacks(button("Help: keyboard"))
	p.fill("input[type=password]", "“"+root+"”")
	p.click(button("Sign in"))
	p.sees(".failure:has-text('Copy it again')")
	p.accessible("Sign in with no token")
	p.fill("input[type=password]", root)
	p.click(button("Sign in"))
	p.sees("tr:has-text('tax')")

	p.at("#/tools/tax/net")
	p.sees(button("Pin"))
	reply := func(body string) {
		p.do("evaluate", "window.real ||= window.fetch; window.fetch = async (to, o) => o?.method === 'POST' ? new Response("+body+") : window.real(to, o)")
	}
	p.click(button("Pin"))
	reply("new ReadableStream({ pull: (c) => c.error(new TypeError('network error')) })")
	p.click("dialog >> " + button("Pin"))
	p.sees("dialog .failure:has-text('The connection broke'):has-text('look before you send it again')")
	reply("'<html>Welcome to the guest network</html>'")
	p.click("dialog >> " + button("Pin"))
	p.sees("dialog .failure:has-text('no answer of the daemon'):has-text('guest network')")
	p.clean()

	p = p.b.open(t, "two", d.URL, nil)
	p.at("#/live")
	p.fill("input[type=password]", slow)
	p.click(button("Sign in"))
	p.sees(".failure:has-text('rate_limited')")
	p.click(button("Sign out"))
	p.sees("h1:text-is('Sign in')")
	p.clean()
}

// Before its scripts are there, as over a slow network, the console says that it loads; where none may run, what else
// there is.
func TestOpsBeforeTheScripts(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{}))
	b := newBrowser(t)
	p := b.open(t, "slow", d.URL, nil)
	p.do("without", "**/core/main.js")
	p.do("goto", d.URL+"/ui/")
	p.sees("main >> text=Loading …")
	p.lacks("noscript")

	p = b.open(t, "none", d.URL, map[string]any{"javaScriptEnabled": false})
	p.do("goto", d.URL+"/ui/")
	p.sees("noscript")
	p.lacks("main")

	p = b.open(t, "whole", d.URL, nil)
	p.at("#/live")
	p.settled()
	if n, _ := p.do("evaluate", "document.querySelectorAll('main').length").(float64); n != 1 {
		t.Errorf("the page has %v main parts, want one", n)
	}
	p.clean()
}

// Names and notes of one long word stay within a phone's window, and a dialog within its frame, wherever it is opened.
func TestOpsLongNames(t *testing.T) {
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	d.Policy(object{"correction": "manual"})
	role, method := strings.Repeat("W", 200), strings.Repeat("M", 200)
	call := d.Call(d.Session(role), method, 1)
	d.Do(200, "POST", "/v1/calls/"+call.CallID+"/verdict", object{"verdict": "wrong",
		"expected": strings.Repeat("X", 300), "note": strings.Repeat("N", 400)})
	p := newBrowser(t).open(t, "one", d.URL, map[string]any{"viewport": object{"width": 360, "height": 800}})
	within := func(what, element string) {
		t.Helper()
		if over, _ := p.do("evaluate", "(e => e.scrollWidth - e.clientWidth)("+element+")").(float64); over > 0 {
			t.Errorf("%s is %v pixels too wide", what, over)
		}
	}
	for _, hash := range []string{"#/live", "#/tools", "#/tools/" + role + "/" + method, "#/inbox",
		"#/calls/" + call.CallID, "#/audit"} {
		p.at(hash)
		p.settled()
		p.sees("main >> text=/WWW|MMM|NNN/")
		within(hash, "document.documentElement")
	}
	p.click(button("Undo"))
	p.sees("dialog >> text=This sends")
	within("the dialog", "document.querySelector('dialog')")
	if to := p.do("evaluate", "getComputedStyle(document.querySelector('dialog h2')).textAlign"); to != "start" {
		t.Errorf("the dialog's title is at its %v", to)
	}
	p.clean()
}
