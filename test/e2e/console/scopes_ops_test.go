//go:build ops

package console

import (
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/recurgentd/recurgentd/internal/api/apitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// scopeOf is the scope that the OpenAPI document names for a request, such as "POST /v1/sessions".
func scopeOf(t *testing.T, doc *openapi3.T, request string) string {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	path, _, _ = strings.Cut(path, "?")
	for template, item := range doc.Paths.Map() {
		form := "^" + regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`) + "$"
		op := item.GetOperation(method)
		if op == nil || !regexp.MustCompile(form).MatchString(path) {
			continue
		}
		for _, r := range *op.Security {
			if scopes := r["bearer"]; len(scopes) > 0 {
				return scopes[0]
			}
		}
	}
	t.Fatalf("the document does not describe %s", request)
	return ""
}

// Whatever scopes a token has, no page offers a request that would be refused: each button copies its request, and the
// OpenAPI document says which scope that needs. What somebody may do is there.
func TestOpsScopes(t *testing.T) {
	doc, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string][2]string{ // by what the token may: its secret, and requests that are offered
		"read":      {"0123456789abcdef-1", ""},
		"call":      {"0123456789abcdef-2", ""},
		"read,call": {"0123456789abcdef-3", "POST /v1/sessions"},
		"read,operate": {"0123456789abcdef-4",
			"PUT /v1/tools/tax/methods/net/examples,POST /v1/tools/tax/methods/net/pin"},
		"read,call,operate,admin": {"0123456789abcdef-5", "POST /v1/sessions,POST /v1/tools/tax/methods/net/try"},
	}
	lines := ""
	for scopes, token := range tokens {
		lines += strings.ReplaceAll(scopes, ",", "-") + " " + token[0] + " scopes=" + scopes + "\n"
	}
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}), "--auth-tokens-file",
		rig.WriteFile(t, "tokens", lines))
	all := d.As(tokens["read,call,operate,admin"][0])
	s := all.Session("tax")
	call := all.Call(s, "net", 1000)
	all.Do(200, "PUT", rig.MethodPath("tax", "net"), object{"code": programNet70})
	all.Policy(object{"correction": "manual", "approval_required": true})
	all.Do(200, "POST", "/v1/calls/"+call.CallID+"/verdict", object{"verdict": "wrong", "expected": 500})
	b := newBrowser(t)
	for scopes, token := range tokens {
		p := b.open(t, scopes, d.URL, nil)
		p.signIn(token[0])
		has := "," + scopes + ","
		offered := map[string]bool{}
		for _, hash := range []string{"#/calls/" + call.CallID, "#/tools", "#/tools/tax", "#/tools/tax/net",
			"#/tools/tax/net?tab=generations&generation=gen-1", "#/tools/tax/net?tab=examples",
			"#/tools/tax/net?tab=try", "#/tools/tax/net?tab=effects", "#/inbox", "#/sessions", "#/sessions/" + s,
			"#/sessions/new", "#/usage", "#/policy", "#/audit", "#/system"} {
			p.at(hash)
			p.settled()
			for _, title := range p.do("evaluate",
				"[...document.querySelectorAll('main button.curl[title]')].map((b) => b.title)").([]any) {
				request := strings.TrimPrefix(title.(string), "Copy as curl: ")
				offered[request] = true
				if scope := scopeOf(t, doc, request); !strings.Contains(has, ","+scope+",") {
					t.Errorf("with %s the page %s offers %s, which needs %s", scopes, hash, request, scope)
				}
			}
			others := strings.HasPrefix(hash, "#/calls") || strings.HasPrefix(hash, "#/sessions/") || hash == "#/audit"
			if strings.Contains(has, ",read,") && (!others || strings.Contains(has, ",operate,")) {
				p.lacks("main .failure")
			}
		}
		for request := range strings.SplitSeq(token[1], ",") {
			if request != "" && !offered[request] {
				t.Errorf("with %s nothing offers %s, but %v", scopes, request, offered)
			}
		}
		p.clean()
		p.do("close")
	}
}

// Caps of tokens are changed by who has the scope admin; who may only operate sees them. With admin one acts in another
// namespace by a token of that namespace: the tab shows where it is, and nothing of another one.
func TestOpsNamespaces(t *testing.T) {
	const root, operator, acme = "0123456789abcdef-root", "0123456789abcdef-oper", "0123456789abcdef-acme"
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}), "--auth-tokens-file",
		rig.WriteFile(t, "tokens", "root "+root+"\noperator "+operator+" scopes=read,operate\nann "+acme+
			" namespace=acme\n"))
	d.As(root).Call(d.As(root).Session("tax"), "net", 1000)
	b := newBrowser(t)
	p := b.open(t, "one", d.URL, nil)
	p.signIn(operator)
	p.at("#/policy")
	p.sees("role=group[name=spend] >> input >> nth=0", ".switch:has-text('repair_enabled') input:not([disabled])")
	p.lacks("role=group[name=spend] >> input:not([disabled]) >> nth=0")
	p.click(button("Sign out"))
	p.sees("h1:has-text('Sign in')")
	p.fill("input[type=password]", root)
	p.click(button("Sign in"))
	p.sees("role=group[name=spend] >> input:not([disabled]) >> nth=0")
	p.fill("role=group[name=spend] >> label:has-text('day tokens') >> nth=0 >> input", "5000")
	p.click(button("Change the policy"))
	p.click("dialog >> " + button("Change the policy"))
	p.sees(".messages >> text=done")
	if got := d.As(root).Get("/v1/policy")["spend"].(object)["day_tokens"]; got != 5000.0 {
		t.Errorf("the cap of a day is %v, want 5000", got)
	}
	p.click(button("Sign out"))
	p.fill("input[type=password]", operator)
	p.click(button("Sign in"))
	p.at("#/audit")
	p.sees("tbody tr:has-text('policy')")
	p.lacks("tbody tr:has-text('policy') >> " + button("Undo"))
	if kept, _ := p.do("evaluate",
		"Object.values(localStorage).join() + document.cookie").(string); strings.Contains(kept, "0123456789abcdef") {
		t.Errorf("%q is kept beyond the tab", kept)
	}

	other := b.open(t, "two", d.URL, nil) // its storage is its own
	other.at("#/live")
	other.sees("h1:has-text('Sign in')")
	other.signIn(acme)
	other.sees("text=ann in acme", "text=No calls yet.")
	other.at("#/tools")
	other.sees("text=No tools yet.")
	other.at("#/tools/tax/net")
	other.sees("text=This method has no program.")
	p.clean()
	other.clean()
}
