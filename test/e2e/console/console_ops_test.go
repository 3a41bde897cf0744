//go:build ops

package console

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

var (
	programNet60 = rig.Program(
		"\tgross, ok := call.Arg(0, \"gross\").(float64)\n\tif !ok {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"gross must be a number\")\n\t}\n\treturn gross * 0.6, nil")
	programNet70 = rig.Program(
		"\tgross, ok := call.Arg(0, \"gross\").(float64)\n\tif !ok {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"gross must be a number\")\n\t}\n\treturn gross * 0.7, nil")
)

// A call is followed while its program is written, its wrong answer corrected and seen right, in two tabs and over a
// restart.
func TestOpsFromForgingToCorrection(t *testing.T) {
	m := rig.NewModel(t, rig.Script{"tax.net": {rig.Held(programNet60), programNet70}})
	d := rig.Start(t, m, "--listen", apptest.Address(t))
	b := newBrowser(t)
	p, other := b.open(t, "one", d.URL, nil), b.open(t, "two", d.URL, nil)
	other.at("#/live")
	other.sees("text=No calls yet.")

	p.at("#/sessions/new")
	p.fill("label:has-text('Role') input", "tax")
	p.click(button("Start"))
	p.sees("h1:has-text('tax')")
	p.fill("label:has-text('Method') input", "net")
	p.fill("label:has-text('Arguments') input", "1000")
	p.click(button("Call"))
	p.sees("h1:has-text('tax.net')", "ol.stages >> text=Forging", ".badge:text-is('running')")
	other.sees("tr:has-text('tax.net') .badge:text-is('running')", "tr:has-text('tax.net'):has-text('Forging')")
	m.Release()
	p.sees("pre >> text=600", ".badge:text-is('ok')", "text=A program that was written for this call, gen-1, answered.")
	other.sees("tr:has-text('tax.net') .badge:text-is('ok')", "tr:has-text('tax.net') code.value:text-is('600')")

	p.click(button("Wrong …"))
	p.fill("textarea", "700")
	p.fill("label:has-text('Note') input", "70 percent")
	p.click(button("Judge wrong"))
	p.sees(".badge:text-is('wrong')", ".badge:text-is('adopted')", "text=gen-2")
	other.do("evaluate", "dispatchEvent(new Event('focus'))") // as when somebody comes back to it
	other.sees("tr:has-text('tax.net') .badge:text-is('wrong')")
	p.click("a:text-is('gen-2')")
	p.sees("table.diff td.removed:has-text('0.6')", "table.diff td.added:has-text('0.7')")
	p.do("goBack")
	p.sees("h1:has-text('tax.net')", ".badge:text-is('wrong')")

	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("the daemon ended in %d", code)
	}
	other.sees("text=Connection lost")
	d.Start()
	d.WantValue(d.Call(d.Session("tax"), "net", 100), 70.0, "persisted")
	other.sees("text=Following", "tr:has-text('(100)') .badge:text-is('ok')")
	p.clean()
	other.clean()
}

// An example is added and run; a rollback and its undo lead back; a method is tried by the form of its interface.
// Another tab shows what was done when somebody comes back to it, and keeps what was typed there.
func TestOpsOperations(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	d.WantValue(d.Call(d.Session("tax"), "net", 1000), 600.0, "generated")
	d.Do(200, "PUT", rig.MethodPath("tax", "net"), map[string]any{"code": programNet70, "reason": "by hand"})
	b := newBrowser(t)
	p, other := b.open(t, "one", d.URL, nil), b.open(t, "two", d.URL, nil)
	other.at("#/tools/tax/net?tab=examples")
	other.click(button("Add"))
	other.fill("textarea[aria-label='Expected 1']", "0.7")

	p.at("#/tools/tax/net?tab=examples")
	p.click(button("Add"))
	p.fill("textarea[aria-label='Input 1']", "[2000]")
	p.fill("textarea[aria-label='Expected 1']", "1400")
	p.click(button("Save"))
	p.sees("text=The examples are saved.")
	p.click(button("Run all"))
	p.sees(".badge:text-is('passed')", "text=1 passed, 0 failed, 0 skipped")
	back := func() { other.do("evaluate", "dispatchEvent(new Event('focus'))") }
	back()
	other.sees("textarea[aria-label='Expected 2']")
	for at, want := range []string{"0.7", "1400"} {
		if got := other.do("inputValue", fmt.Sprintf("textarea[aria-label='Expected %d']", at+1)); got != want {
			t.Errorf("the other tab expects %v as its example %d, want %s", got, at+1, want)
		}
	}
	other.at("#/tools/tax/net?tab=generations")
	other.sees("nav[aria-label='Generations'] a:has(strong:text-is('gen-2')) .badge:text-is('current')")

	p.at("#/tools/tax/net?tab=generations&generation=gen-1")
	p.click(button("Roll back to gen-1"))
	p.fill("dialog input", "the old rate")
	p.click("dialog >> " + button("Roll back to gen-1"))
	p.sees("nav[aria-label='Generations'] a:has(strong:text-is('gen-1')) .badge:text-is('current')")
	if got := d.Artifact("tax", "net")["current_generation"]; got != "gen-1" {
		t.Errorf("after the rollback %v is current", got)
	}
	back()
	other.sees("nav[aria-label='Generations'] a:has(strong:text-is('gen-1')) .badge:text-is('current')")
	other.clean()
	p.click(".message >> " + button("Undo"))
	p.sees("nav[aria-label='Generations'] a:has(strong:text-is('gen-2')) .badge:text-is('current')")
	if got := d.Artifact("tax", "net")["current_generation"]; got != "gen-2" {
		t.Errorf("after the undo %v is current", got)
	}

	p.at("#/tools/tax/net?tab=try")
	p.fill("label:has-text('gross') input", "10")
	p.click(button("Run"))
	p.sees("section:has-text('Result') pre:has-text('7')", "text=Examples: 1 passed, 0 failed, 0 skipped.")

	p.at("#/audit")
	p.sees("text=the old rate", ".badge:text-is('undone')")
	p.clean()
}

// With a token that may only read, the console signs in and offers nothing that would be refused. Errors show what to
// do, and how long to wait.
func TestOpsReadOnly(t *testing.T) {
	const admin, reader, slow = "0123456789abcdef-admin", "0123456789abcdef-reader", "0123456789abcdef-slow"
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}), "--auth-tokens-file",
		rig.WriteFile(t, "tokens", "root "+admin+"\nroot2 "+reader+" scopes=read\nslow "+slow+
			" scopes=read rate=0.001/s\n"))
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/live")
	p.fill("input[type=password]", "not-a-token")
	p.click(button("Sign in"))
	p.sees(".failure")
	p.accessible("Sign in")
	p.fill("input[type=password]", reader)
	p.click(button("Sign in"))
	p.sees("h1:has-text('Live')", "text=root2", "text=Following")
	p.at("#/audit") // by its address alone
	p.sees(".failure:has-text('insufficient_scope') .hint")
	for _, hash := range []string{"#/live", "#/tools", "#/inbox", "#/sessions", "#/usage", "#/policy", "#/system"} {
		p.do("evaluate", "location.hash = '"+hash+"'")
		p.sees("a[href='" + hash + "'][aria-current=page]")
		for _, none := range []string{"main .action", "main button.danger", "a:text-is('New session')",
			"a:text-is('Audit')"} {
			p.lacks(none)
		}
	}
	if stored, _ := p.do("evaluate",
		"Object.values(localStorage).join() + document.cookie").(string); strings.Contains(stored, reader) {
		t.Errorf("the token is kept beyond the tab: %q", stored)
	}
	p.click(button("Sign out"))
	p.sees("h1:has-text('Sign in')")
	if kept, _ := p.do("evaluate", "sessionStorage.getItem('recurgent.token')").(string); kept != "" {
		t.Errorf("the token %q is kept after signing out", kept)
	}
	p.fill("input[type=password]", slow) // its first request is for its name, the second too many
	p.click(button("Sign in"))
	p.sees(".failure:has-text('rate_limited'):has-text('Try again in')")
	p.clean()
}

// Names, values, code, errors and reasons that are script and markup are shown as they are, and nothing of them runs.
func TestOpsHostileTexts(t *testing.T) {
	const (
		role   = `<img src=x onerror=canary()>`
		method = `"><svg onload=canary()>`
		value  = `<script>canary()</script><img src=x onerror="canary()"><a href="javascript:canary()">x</a>${canary()}</textarea><style>*{display:none}</style>`
	)
	hostile := rig.Program("\t// " + value +
		"\n\tif call.Arg(0, \"<b onclick=canary()>\") == nil {\n\t\treturn nil, recurgent.Fail(\"nope\", call.Kwargs[\"why\"].(string))\n\t}\n\treturn map[string]any{call.Arg(0, \"<b onclick=canary()>\").(string): call.Arg(0, \"<b onclick=canary()>\")}, nil")
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(hostile)
	d := rig.Start(t, m)
	s := d.Session(role)
	ok := d.Call(s, method, value)
	failed := d.CallWith(s, method, map[string]any{"why": value})
	d.Do(200, "POST", "/v1/calls/"+ok.CallID+"/verdict", map[string]any{"verdict": "right", "note": value})
	d.Do(200, "POST", rig.MethodPath(role, method)+"/pin", map[string]any{"reason": value})
	p := newBrowser(t).open(t, "one", d.URL, nil)
	name := "/" + escaped(role) + "/" + escaped(method)
	for hash, sees := range map[string]string{
		"#/live": "onerror=canary()", "#/calls/" + ok.CallID: "<script>canary()</script>",
		"#/calls/" + failed.CallID: "<script>canary()</script>", "#/tools": "<img src=x",
		"#/tools/" + escaped(role): "<svg onload",
		"#/tools" + name:           "<script>canary()", "#/tools" + name + "?tab=generations": "<script>canary()",
		"#/tools" + name + "?tab=try": "<svg onload", "#/tools" + name + "?tab=calls": "<img src=x",
		"#/sessions": "<img src=x", "#/sessions/" + s: "<img src=x", "#/usage": "<img src=x",
		"#/audit": "<script>canary()",
	} {
		p.at(hash)
		p.sees("main :text('" + strings.ReplaceAll(sees, "'", `\'`) + "')")
		p.clean()
	}
	p.at("#/tools" + name + "?tab=examples")
	p.sees("textarea[aria-label='Input 1']")
	p.clean()
}

func escaped(s string) string {
	return strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", `"`, "%22", "=", "%3D").Replace(s)
}

// shots is where screenshots are written, to be looked at.
func shots(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(rig.Root() + "/.cache/console")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Every page has something to show on the embedded demo, fits the window, and is accessible, in light and dark, on a
// desktop and on a phone.
func TestOpsEveryPage(t *testing.T) {
	d := rig.Start(t, nil)
	s := d.Session("calculator")
	d.Call(s, "add", 2, 3)
	d.Call(s, "add", 40, 2)
	d.Call(s, "divide", 1, 0)
	d.Call(d.Session("text_tools"), "initials", "Ada Lovelace")
	repaired := d.Call(d.Session("text_tools"), "initials", "Grace  Hopper")
	net := d.Call(d.Session("tax"), "net", 1000)
	d.Policy(map[string]any{"correction": "manual"})
	d.Do(200, "POST", "/v1/calls/"+net.CallID+"/verdict", map[string]any{"verdict": "wrong", "expected": 700,
		"note": "30 percent"})
	pages := map[string]string{
		"live": "#/live", "log": "#/live?log=1", "call": "#/calls/" + net.CallID,
		"repaired": "#/calls/" + repaired.CallID, "tools": "#/tools", "tool": "#/tools/calculator",
		"method":      "#/tools/text_tools/initials",
		"generations": "#/tools/text_tools/initials?tab=generations", "examples": "#/tools/tax/net?tab=examples",
		"try": "#/tools/calculator/add?tab=try", "effects": "#/tools/calculator/add?tab=effects",
		"calls": "#/tools/calculator/add?tab=calls", "inbox": "#/inbox", "sessions": "#/sessions",
		"session": "#/sessions/" + s, "new": "#/sessions/new", "usage": "#/usage", "policy": "#/policy",
		"audit": "#/audit", "system": "#/system",
	}
	b, dir := newBrowser(t), shots(t)
	for _, scheme := range []string{"light", "dark"} {
		for size, viewport := range map[string]map[string]any{"desktop": {"width": 1280, "height": 900},
			"phone": {"width": 390, "height": 844}} {
			p := b.open(t, scheme+"-"+size, d.URL, map[string]any{"colorScheme": scheme, "viewport": viewport})
			for name, hash := range pages {
				p.at(hash)
				p.settled()
				what := name + ", " + scheme + ", " + size
				p.lacks("main .empty")
				p.lacks("main .failure")
				if wide, _ := p.do("evaluate",
					"document.documentElement.scrollWidth - innerWidth").(float64); wide > 0 {
					t.Errorf("%s is %v pixels wider than the window", what, wide)
				}
				if (scheme == "light") == (size == "desktop") { // both colours and both sizes, in half the time
					p.accessible(what)
				}
				if name == "generations" {
					if space, _ := p.do("evaluate",
						"getComputedStyle(document.querySelector('table.diff tbody td + td')).whiteSpace").(string); space != "pre-wrap" {
						t.Errorf("%s: differences are shown with %q white space, which loses indents", what, space)
					}
				}
				p.do("screenshot", map[string]any{"path": dir + "/" + name + "-" + scheme + "-" + size + ".png",
					"fullPage": true})
			}
			// an absolute path: that of docs/console.png
			if out := os.Getenv("CONSOLE_PICTURE"); out != "" && scheme+size == "lightdesktop" {
				p.at(pages["generations"])
				p.sees("table.diff")
				p.do("screenshot", map[string]any{"path": out})
			}
			p.clean()
			p.do("close")
		}
	}
}

// The keyboard does what the help says, and the theme stays chosen.
func TestOpsKeyboard(t *testing.T) {
	d := rig.Start(t, nil)
	d.Call(d.Session("calculator"), "add", 2, 3)
	d.Call(d.Session("calculator"), "sqrt", 2)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/live")
	p.sees("tbody tr")
	for _, key := range []string{"j", "j", "Enter"} {
		p.do("press", "body", key)
	}
	p.sees("h1:has-text('calculator.add')")
	p.do("press", "body", "g")
	p.do("press", "body", "t")
	p.sees("h1:has-text('Tools'):focus", "[data-search]") // a page that is shown takes the focus
	p.do("press", "body", "/")
	if at, _ := p.do("evaluate", "document.activeElement.hasAttribute('data-search')").(bool); !at {
		t.Error("/ does not lead to the search")
	}
	p.do("type", "[data-search]", "calc")
	p.do("press", "[data-search]", "Escape")
	p.do("waitForURL", p.url+"/ui/#/tools?q=calc")
	p.do("press", "body", "g")
	p.do("press", "body", "l")
	p.sees("tbody tr")
	for _, key := range []string{"j", "Space"} {
		p.do("press", "body", key)
	}
	p.sees(".follow:text-is('Paused')")
	p.do("press", "body", "?")
	p.sees("dialog >> text=next row, previous row")
	p.accessible("Help")
	p.do("press", "dialog", "Escape")
	p.click("role=button[name=/^Theme/]")
	p.click("role=button[name=/^Theme/]")
	p.do("reload")
	p.sees("html[data-theme=dark]", button("Theme: dark"))
	p.clean()
}
