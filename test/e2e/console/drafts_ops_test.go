//go:build ops

package console

import (
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// has reports it when a field has another text.
func (p *page) has(field, want string) {
	p.t.Helper()
	p.sees(field)
	if got := p.do("inputValue", field); got != want {
		p.t.Errorf("%s has %q, want %q", field, got, want)
	}
}

// asks reports it when the browser would ask before the tab goes, or would not.
func (p *page) asks(want bool) {
	p.t.Helper()
	if left, _ := p.do("evaluate",
		"dispatchEvent(new Event('beforeunload', { cancelable: true }))").(bool); left == want {
		p.t.Errorf("the browser asks before the tab goes: %v, want %v", !left, want)
	}
}

// hash leads to an address of the console as a link in it does.
func (p *page) hash(to, title string) {
	p.t.Helper()
	p.do("evaluate", "location.hash = '"+to+"'")
	p.sees("h1:has-text('" + title + "')")
	p.settled()
}

// away goes to Live by the link in the bar, does something there, and goes back.
func (p *page) away(meanwhile func()) {
	p.t.Helper()
	at, _ := p.do("evaluate", "location.hash").(string)
	p.click("nav.pages a:text-is('Live')")
	p.sees("h1:text-is('Live')")
	meanwhile()
	p.do("goBack")
	p.gone("h1:text-is('Live')")
	p.settled()
	if now, _ := p.do("evaluate", "location.hash").(string); now != at {
		p.t.Errorf("back leads to %s, want %s", now, at)
	}
}

// Unsaved text is there again when one comes back to the page, says so, says what others have stored in
// the meantime, and is discarded by a button. The browser asks before a tab goes with it, and only then.
func TestOpsDrafts(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	d.Policy(object{"correction": "manual"})
	s := d.Session("tax")
	call := d.Call(s, "net", 1000)
	path := rig.MethodPath("tax", "net")
	d.Do(200, "PUT", path+"/examples",
		object{"examples": []object{{"args": []any{1000}, "expect": object{"value": 600}}}})
	p := newBrowser(t).open(t, "one", d.URL, nil)
	nothing := func() {}

	const hours, keys = "role=group[name=retention] >> label:has-text('value hours') input",
		".switch:has-text('redact_keys') textarea"
	p.at("#/policy")
	p.settled()
	p.asks(false)
	p.fill(hours, "48")
	p.fill(keys, `["secret"`)
	p.sees("h2:text-is('2 changes not saved yet')")
	p.asks(true)
	p.away(func() { d.Policy(object{"retention": object{"value_hours": 12}}) })
	p.sees("h2:text-is('2 changes not saved yet')",
		".unsaved:has-text('The stored retention was changed since you typed'):has-text('\"value_hours\":12')",
		"text=This is not JSON of the same type.")
	p.lacks(".unsaved >> text=The stored redact_keys")
	p.has(hours, "48")
	p.has(keys, `["secret"`)
	p.accessible("Policy with a draft")
	p.click(button("Discard"))
	p.gone(".unsaved")
	p.has(hours, "12")
	p.asks(false)
	p.fill(hours, "36")
	p.away(nothing)
	p.click(button("Change the policy"))
	p.click("dialog >> " + button("Change the policy"))
	p.gone(".unsaved")
	p.asks(false)
	if got := d.Get("/v1/policy")["retention"].(object)["value_hours"]; got != 36.0 {
		t.Errorf("value_hours is %v, want 36", got)
	}

	const expected = "textarea[aria-label='Expected 1']"
	p.hash("#/tools/tax/net?tab=examples", "tax.net")
	p.lacks("text=Not saved")
	p.fill(expected, "700")
	p.sees("text=Not saved")
	p.away(nothing)
	p.has(expected, "700")
	p.lacks("text=The stored examples were changed")
	p.click(button("Discard"))
	p.gone("text=Not saved")
	p.has(expected, "600")
	p.asks(false)
	p.fill("textarea[aria-label='Note 1']", "sixty percent")
	p.click(button("Add"))
	p.fill("textarea[aria-label='Input 2']", "[2000]")
	p.fill("textarea[aria-label='Expected 2']", "1200")
	p.asks(true)
	p.away(func() {
		stored := examples(t, d, "tax", "net")
		stored[0]["tolerance"], stored[0]["expect"] = 1, object{"value": 601}
		d.Do(200, "PUT", path+"/examples",
			object{"examples": append(stored, object{"args": []any{3000}, "expect": object{"value": 1800}})})
	})
	p.sees("text=The stored examples were changed since you typed.")
	p.has(expected, "600")
	p.has("textarea[aria-label='Note 1']", "sixty percent")
	p.has("textarea[aria-label='Expected 2']", "1200")
	p.has("textarea[aria-label='Expected 3']", "1800")
	p.accessible("Examples with a draft")
	p.click(button("Save"))
	p.sees("text=The examples are saved.")
	p.gone("text=Not saved")
	p.asks(false)
	p.away(nothing)
	p.has("textarea[aria-label='Expected 3']", "1800")
	p.lacks("textarea[aria-label='Expected 4']")
	if all := examples(t, d, "tax", "net"); len(all) != 3 {
		t.Errorf("the examples are %v", all)
	}

	const gross, code = "label:has-text('gross') input", "label:has-text('Code') textarea"
	p.hash("#/tools/tax/net?tab=try", "tax.net")
	p.fill(gross, "10")
	p.asks(true)
	p.click(button("Run"))
	p.sees("section:has-text('Result') pre:has-text('6')")
	p.asks(false) // no more than arguments that have served
	p.do("selectOption", "label:has-text('Program') select", "edit")
	p.fill(code, strings.Replace(programNet60, "0.6", "0.5", 1))
	p.click(button("Run"))
	p.sees("section:has-text('Result') pre:has-text('5')")
	p.asks(true)
	p.away(func() { d.Do(200, "PUT", path, object{"code": programNet70}) })
	p.has(gross, "10")
	p.sees("text=The current program was changed since you began with this code.")
	p.click(button("Run"))
	p.sees("section:has-text('Result') pre:has-text('5')")
	p.click(button("Discard"))
	p.gone(code)
	p.has(gross, "")
	p.asks(false)

	p.hash("#/calls/"+call.CallID, "tax.net")
	p.click(button("Wrong …"))
	p.fill("form textarea", "700")
	p.away(nothing)
	p.has("form textarea", "700")
	p.asks(true)
	p.click(button("Judge wrong"))
	p.sees("section:has-text('Verdict') .badge:text-is('wrong')")
	p.gone("form textarea")
	p.asks(false)
	p.away(nothing)
	p.lacks("form textarea")

	const method, arguments = "label:has-text('Method') input", "label:has-text('Arguments') input"
	p.hash("#/sessions/"+s, "tax")
	p.fill(method, "net")
	p.fill(arguments, "100")
	p.away(nothing)
	p.has(method, "net")
	p.has(arguments, "100")
	p.click(button("Call"))
	p.sees(".reply .badge:text-is('ok')")
	p.lacks("text=Not saved")
	p.has(method, "net")
	p.asks(false)
	p.away(nothing)
	p.has(method, "")

	p.fill(method, "other")
	p.do("reload")
	p.settled()
	p.has(method, "")
	p.do("reload")
	if asked := p.do("questions").([]any); len(asked) != 1 || asked[0] != "beforeunload" {
		t.Errorf("the browser asked %v, want once whether to leave", asked)
	}
	p.clean()
}

// Typed text is in the tab's memory alone. It is gone by signing out, and on all pages but the one that is shown
// where another token is needed; somebody else finds nothing there either.
func TestOpsDraftsEnd(t *testing.T) {
	id := oidctest.New(t)
	now := time.Now()
	token := func(n int, subject string) string {
		return id.Token(t, now, map[string]any{"jti": n, "sub": subject, "scope": "read call operate"})
	}
	expired := id.Token(t, now.Add(-48*time.Hour), nil)
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}), "--oidc-issuer", id.URL,
		"--oidc-audience", "recurgentd", "--oidc-namespace-claim", "namespace")
	alice := d.As(token(0, "alice"))
	alice.Call(alice.Session("tax"), "net", 1000)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	const hours, note, saved = "role=group[name=retention] >> label:has-text('value hours') input",
		"textarea[aria-label='Note 1']", "text=No examples yet."
	examples := func() { p.hash("#/tools/tax/net?tab=examples", "tax.net") }
	types := func() {
		examples()
		p.click(button("Add"))
		p.fill(note, "what only alice knows")
	}
	again := func(own, other string) { // another token is needed
		p.expire(own, expired)
		p.do("evaluate", "dispatchEvent(new Event('focus'))") // it is read again when somebody comes back
		p.again(other)
		p.settled()
	}

	p.signIn(token(1, "alice"))
	types()
	p.hash("#/policy", "Policy")
	p.fill(hours, "48")
	again(token(1, "alice"), token(2, "alice"))
	p.sees("h2:text-is('1 change not saved yet')")
	p.has(hours, "48")
	p.asks(true)
	examples()
	p.sees(saved)
	p.lacks(note)
	p.hash("#/policy", "Policy")
	p.has(hours, "48")
	types()
	if kept, _ := p.do("evaluate",
		"JSON.stringify([Object.values(localStorage), Object.values(sessionStorage), document.cookie, history.state])").(string); strings.Contains(kept, "alice knows") || !strings.Contains(kept, token(2, "alice")) {
		t.Errorf("what was typed is kept in %s", kept)
	}
	again(token(2, "alice"), token(3, "bob"))
	p.sees("text=bob in acme", saved)
	p.lacks(note)
	p.asks(false)
	types()
	p.click(button("Sign out"))
	p.sees("h1:text-is('Sign in')")
	p.asks(false)
	p.fill("input[type=password]", token(4, "bob"))
	p.click(button("Sign in"))
	p.gone("h1:text-is('Sign in')")
	p.settled()
	p.sees(saved)
	p.lacks(note)
	p.clean()
}
