//go:build ops

package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// expire has the page send an expired token in place of its own from now on, as if time had passed.
func (p *page) expire(own, expired string) {
	p.t.Helper()
	p.do("evaluate", fmt.Sprintf(`{
		const send = window.fetch;
		window.fetch = (to, o) => send(to, o?.headers?.Authorization === 'Bearer %s' ? { ...o, headers: { ...o.headers, Authorization: 'Bearer %s' } } : o);
	}`, own, expired))
}

// again signs in where a token was refused in the middle.
func (p *page) again(token string) {
	p.t.Helper()
	p.sees("h1:text-is('Sign in')", ".failure:has-text('The token expired at')")
	p.fill("input[type=password]", token)
	p.click(button("Sign in"))
	p.gone("h1:text-is('Sign in')")
}

// A token that expires in the middle: the page says so, asks for another one, and has what was typed as it was, in a
// dialog too; but not for somebody else.
func TestOpsTokenExpires(t *testing.T) {
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
	p.signIn(token(1, "alice"))
	p.at("#/tools/tax/net?tab=examples")
	p.click(button("Add"))
	p.fill("textarea[aria-label='Expected 1']", "1200")
	p.fill("textarea[aria-label='Input 1']", "[2000]")
	p.expire(token(1, "alice"), expired)
	p.click(button("Save"))
	p.sees("h1:text-is('Sign in')")
	p.lacks("textarea")
	p.accessible("Sign in again")
	p.again(token(2, "alice"))
	p.sees("textarea[aria-label='Expected 1']")
	p.click(button("Save"))
	p.sees("text=The examples are saved.")
	if got := alice.Get(rig.MethodPath("tax", "net") +
		"/examples")["examples"].([]any); len(got) != 1 || !rig.Equal([]any{2000}, got[0].(object)["args"]) {
		t.Errorf("the examples are %v", got)
	}

	p.click(button("Pin"))
	p.fill("dialog input", "for the audit")
	p.expire(token(2, "alice"), expired)
	p.click("dialog >> " + button("Pin"))
	p.again(token(3, "alice"))
	p.click("dialog >> " + button("Pin"))
	p.gone("dialog")
	p.sees(button("Unpin"))
	if reason := alice.List("/v1/maintenance/audit")[0]["reason"]; reason != "for the audit" {
		t.Errorf("the reason is %v", reason)
	}

	p.click(button("Unpin"))
	p.fill("dialog input", "what only alice knows")
	p.expire(token(3, "alice"), expired)
	p.click("dialog >> " + button("Unpin"))
	p.again(token(4, "bob"))
	p.sees("text=bob in acme", button("Unpin"))
	p.lacks("dialog")
	p.click(button("Unpin"))
	if typed, _ := p.do("inputValue", "dialog input").(string); typed != "" {
		t.Errorf("bob sees what alice typed: %q", typed)
	}
	p.clean()
}
