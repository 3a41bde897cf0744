//go:build ops

package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Content that a program fetched from a hostile page is text wherever it shows: in values, errors, context, effects,
// evidence, examples and the audit trail; so are the names of principals and sessions, what stands in an address, and
// links that are scripts.
func TestOpsHostileFetches(t *testing.T) {
	const (
		markup = `<script>canary()</script><img src=x onerror=canary()><svg onload=canary()></svg><iframe srcdoc="<script>parent.canary()</script>"></iframe><a href="javascript:canary()">x</a>` +
			`<style>main{display:none}</style><base href="//evil.example.org/"><meta http-equiv="refresh" content="0;url=javascript:canary()">` + "</pre></textarea>\u202e{{canary()}}${canary()}"
		root, eve, hostile = "0123456789abcdef-root", "0123456789abcdef-eve1", `"><script>canary()`
		role               = "page"
	)
	source := rig.NewSource(t, "")
	source.Answer(func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html; x=<script>canary()</script>")
		_, _ = w.Write([]byte("<!doctype html><title>" + markup + "</title>" + markup))
	})
	address := source.URL + "/<script>canary()</script>?q=<img%20src=x%20onerror=canary()>"
	fetch := "\tres, err := call.Fetch(" + `"` + address + `"` + ")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n"
	m := rig.NewModel(t, rig.Script{
		"page.read": {rig.Program(fetch +
			"\tcall.Context[res.Body] = res.Body\n\treturn map[string]any{res.Body: res.Body, \"type\": res.Header[\"Content-Type\"], \"link\": \"javascript:canary()\"}, nil")},
		"page.fail": {rig.Program(fetch + "\treturn nil, recurgent.Fail(\"parse_failed\", res.Body)")},
		"page.blow": {rig.Program(fetch + "\tpanic(res.Body)")},
		"page.link": {rig.Program(
			"\tcall.Fetch(\"javascript:canary()\")\n\t_, err := call.Fetch(\"http://<img src=x onerror=canary()>/\")\n\treturn nil, err")},
	})
	d := rig.Start(t, m, "--fetch-allow", source.Host(), "--auth-tokens-file",
		rig.WriteFile(t, "tokens", "root "+root+"\n"+hostile+" "+eve+" scopes=read,call\n"))
	boss, guest := d.As(root), d.As(eve)
	s := guest.Session(role, object{"metadata": object{"<b>": markup}})
	read, fail := guest.Call(s, "read", 1), guest.Call(s, "fail", 2)
	blow, link := guest.Call(s, "blow", 3), guest.Call(s, "link", "javascript:canary()")
	if !read.Outcome.OK || fail.Outcome.OK || blow.Outcome.OK || link.Outcome.OK {
		t.Fatalf("got %v, %v, %v, %v", read.Outcome, fail.Outcome, blow.Outcome, link.Outcome)
	}
	guest.Do(200, "POST", "/v1/calls/"+read.CallID+"/verdict",
		object{"verdict": "wrong", "expected": markup, "note": markup})
	boss.Do(200, "PUT", rig.MethodPath(role, "read"),
		object{"code": rig.Program("\t// " + strings.ReplaceAll(markup, "\n", " ") +
			"\n\t_ = \"https://evil.example.org/\"\n\treturn 1, nil"), "reason": markup})
	boss.Do(201, "PUT", "/v1/connections/evil", object{"description": markup, "hosts": []any{"evil.example.org"},
		"methods": []any{"GET"}, "roles": []any{"*"}, "auth": object{"type": "bearer", "secret": "0123456789"}})
	boss.Policy(object{"redact_keys": []any{markup}, "correction": "manual"})
	boss.Do(201, "PUT", "/v1/tools/page2", object{"purpose": markup, "acceptance": []any{object{"assert": markup}}})

	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.signIn(root)
	text := "main :text('<script>canary()</script>')"
	bad := url.PathEscape(markup)
	for _, page := range []struct{ hash, sees string }{
		{"#/live", "text=javascript:canary()"}, {"#/live?log=1", "text=javascript:canary()"},
		{"#/calls/" + read.CallID, text}, {"#/calls/" + fail.CallID, text}, {"#/calls/" + blow.CallID, text},
		{"#/calls/" + link.CallID, "text=javascript:canary()"},
		{"#/tools", "text=<img src=x onerror=canary()>"}, {"#/tools/page", "h1"}, {"#/tools/page2", text},
		{"#/tools/page/read", text}, {"#/tools/page/read?tab=generations", text},
		{"#/tools/page/read?tab=examples", "h1"}, {"#/tools/page/fail", "h1"}, {"#/tools/page/blow", "h1"},
		{"#/tools/page/read?tab=effects", "text=evil.example.org"}, {"#/tools/page/read?tab=calls", "tbody tr"},
		{"#/inbox", text}, {"#/sessions", "text=><script>canary()"}, {"#/sessions/" + s, text},
		{"#/usage?by=owner", "td >> text=><script>canary()"},
		{"#/audit", text}, {"#/policy", "textarea"}, {"#/system", "h2"},
		// Addresses that somebody else wrote.
		{"#/sessions/" + bad, ".empty"}, {"#/calls/" + bad, "h1"}, {"#/tools/" + bad, "h1"},
		{"#/tools/" + bad + "/" + bad, "h1"}, {"#/" + bad, "text=There is no such page"},
		{"#/live?q=" + bad + "&session=" + bad + "&log=1", "h1"},
		{"#/audit?principal=" + bad, "h1"}, {"#/inbox?kind=" + bad + "&after=" + bad, ".failure"},
		{"#/usage?by=" + bad + "&days=" + bad, "h1"}, {"#/tools?q=" + bad + "&sort=" + bad, ".failure"},
		{"#javascript:canary()", "text=There is no such page"}, {"#/constructor", "text=There is no such page"},
		{"#/__proto__/x", "text=There is no such page"}, {"#/tools/javascript:canary()", "h1"},
	} {
		p.at(page.hash)
		p.sees(page.sees)
		p.settled()
		p.harmless(page.hash)
	}
	p.at("#/audit")
	p.click("tbody tr:has-text('put') >> nth=0 >> a >> nth=0")
	p.sees("dialog[open]")
	p.harmless("an entry of the audit trail")
	p.clean()
}

// harmless reports what markup would have made of the page, and links that lead elsewhere.
func (p *page) harmless(what string) {
	p.t.Helper()
	made := p.do("evaluate", `[...document.querySelectorAll('body img, body script, body iframe, body base, body meta, body style, main svg, [onerror], [onload], [srcdoc]')].map((e) => e.outerHTML)
		.concat([...document.querySelectorAll('a[href]')].map((a) => a.href).filter((h) => !h.startsWith(location.origin + '/')))`).([]any)
	for _, m := range made {
		p.t.Errorf("%s: the page has %v", what, m)
	}
	for _, fault := range p.do("faults").([]any) {
		p.t.Errorf("%s: %v", what, fault)
	}
	p.sees("main h1")
}
