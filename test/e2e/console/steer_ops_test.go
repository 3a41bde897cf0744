//go:build ops

package console

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// curl runs the command that a button copies, in a shell, and returns what it prints.
func (p *page) curl(selector, token string) string {
	p.t.Helper()
	// what was copied before, and the message of that, may still be there
	p.do("evaluate", "navigator.clipboard.writeText('')")
	p.click(selector)
	p.sees(".messages >> text=Copied") // which passes
	command := ""
	rig.Until(p.t, "command on the clipboard", func() bool {
		command, _ = p.do("evaluate", "navigator.clipboard.readText()").(string)
		return command != ""
	})
	if token != "" && strings.Contains(command, token) {
		p.t.Errorf("the command shows the token: %s", command)
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(os.Environ(), "RECURGENT_TOKEN="+token, "NO_PROXY=127.0.0.1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// Live shows calls while they run, with what they do at the moment and the calls that they make; it filters and pauses.
// An ended call shows its stages as bars, why its program answered, the calls below it, and is replayed; what a button
// copies does what the button does.
func TestOpsFollowing(t *testing.T) {
	const root = "0123456789abcdef-ro'ot"
	outer := rig.Program("\to := call.Tool(\"calculator\").Call(\"add\", 2.0, 3.0)\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")
	m := rig.NewModel(t, rig.Script{"sums.total": {outer}, "calculator.add": {rig.Held(rig.ProgAdd)},
		"other.m": {rig.ProgEcho}})
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens", "root "+root+"\n"))
	boss := d.As(root)
	other := boss.Call(boss.Session("other"), "m", "it's \"$HOME\" `x` \\ ü")
	p := newBrowser(t).open(t, "one", d.URL,
		map[string]any{"permissions": []string{"clipboard-read", "clipboard-write"}})
	p.signIn(root)
	p.sees("tr:has-text('other.m')", "text=Following")
	done := make(chan rig.Reply, 1)
	s := boss.Session("sums")
	go func() { done <- boss.Call(s, "total") }()
	p.sees("tr:has-text('sums.total') .badge:text-is('running')", "tr:has-text('calculator.add') .branch",
		"tr:has-text('calculator.add'):has-text('Forging')")
	p.fill("input[type=search]", "calculator.add")
	p.do("press", "input[type=search]", "Enter")
	p.gone("tr:has-text('other.m')") // the list is that of the search
	p.sees("tr:has-text('calculator.add') .badge:text-is('running')", "text=Following")
	p.click(button("Pause"))
	m.Release()
	total := <-done
	p.sees("text=Paused, 1 new call")
	p.click(button("Resume"))
	p.sees("tr:has-text('calculator.add') .badge:text-is('ok')")
	p.at("#/live")
	p.sees("tr:has-text('calculator.add') .branch")

	p.at("#/calls/" + total.CallID)
	p.sees("ol.stages li:has-text('Asking the model') .stage", "ol.stages li:has-text('Checking the program') .num",
		"ol.stages li:has-text('Running') .stage",
		"table[aria-label='Calls of this trace'] tr:has-text('calculator.add') .branch",
		"h2:has-text('Why')", ".prose >> text=program", ".checks li", "pre >> text=5")
	why := boss.Get("/v1/calls/" + total.CallID + "/why")
	if shown, _ := p.do("innerText",
		".prose").(string); strings.TrimSpace(shown) != strings.TrimSpace(why["summary"].(string)) {
		t.Errorf("why: the page says %q, the daemon %q", shown, why["summary"])
	}
	p.accessible("Call with stages")
	p.click(button("Replay"))
	p.sees(".badge:text-is('equal')")

	p.at("#/calls/" + other.CallID)
	p.sees("h2:has-text('Outcome')")
	got := p.curl(button("Copy as curl"), root)
	if want := boss.Do(200, "GET", "/v1/calls/"+other.CallID,
		nil).Body; !rig.Equal(rig.ParseJSON(string(want)), rig.ParseJSON(got)) {
		t.Errorf("the copied command prints\n%s\nwant\n%s", got, want)
	}
	p.curl("role=button[name='Copy “Right” as curl']", root)
	p.do("reload")
	p.sees("section:has-text('Verdict') .badge:text-is('right')")
	p.at("#/sessions/" + s)
	p.fill("label:has-text('Method') input", "m")
	p.fill("label:has-text('Arguments') input", `"it's \"$HOME\" `+"`x`"+` \\ ü"`)
	p.fill("label:has-text('Role') input", "other")
	var reply rig.Reply
	if err := json.Unmarshal([]byte(p.curl("role=button[name='Copy “Call” as curl']", root)),
		&reply); err != nil || !rig.Equal(other.Outcome.Value, reply.Outcome.Value) {
		t.Errorf("the copied call answers %v (%v), want %v", reply.Outcome.Value, err, other.Outcome.Value)
	}
	p.clean()
}

// The policy's switches say what they would change, structured ones are edited as JSON, and an operation is undone from
// the audit trail by its own id, whatever was done since.
func TestOpsPolicyAndAudit(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60, programNet70}}))
	s := d.Session("tax")
	for i := range 3 {
		d.Call(s, "net", 1000+i)
	}
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/policy")
	before := d.Get("/v1/policy")
	p.click(".switch:has-text('artifact_read_enabled') input")
	p.sees("text=1 change not saved yet", "text=Of the last 3 calls, 2 would have been decided differently.",
		"tr:has-text('tax.net'):has-text('forge')")
	// as over a slow network
	p.do("evaluate", "window.real = window.fetch; window.fetch = (to, o) => String(to).endsWith('/simulate') ? new Promise(() => {}) : real(to, o)")
	p.click(".switch:has-text('force_generation') input")
	p.sees("text=Simulating on the last calls")
	p.lacks("text=Of the last 3 calls") // that was another change
	p.do("evaluate", "window.fetch = window.real")
	p.click(".switch:has-text('force_generation') input")
	p.sees("text=Of the last 3 calls, 2 would have been decided differently.")
	p.click(".switch:has-text('artifact_read_enabled') input")
	p.gone("text=1 change not saved yet")
	for name := range before {
		if name != "redact_version" {
			p.sees(".switch:has-text('" + name + "')")
		}
	}
	p.fill(".switch:has-text('redact_keys') textarea", `["secret"`)
	p.sees("text=This is not JSON of the same type.")
	p.fill(".switch:has-text('redact_keys') textarea", `["secret"]`)
	p.fill("role=group[name=retention] >> label:has-text('value hours') input", "48")
	p.sees("text=2 changes not saved yet", "text=None of the last 3 calls")
	if seen, _ := p.do("evaluate",
		"(([t, f]) => t.top >= 48 && t.bottom < f.top && f.bottom <= innerHeight)([document.querySelector('.unsaved'), document.activeElement].map((e) => e.getBoundingClientRect()))").(bool); !seen {
		t.Error("what is not saved is out of sight, or hides the field")
	}
	p.accessible("Policy with a change")
	p.click(button("Change the policy"))
	p.click("dialog >> " + button("Change the policy"))
	p.sees(".messages >> text=done")
	if got := d.Get("/v1/policy"); got["retention"].(object)["value_hours"] != 48.0 ||
		!rig.Equal([]any{"secret"}, got["redact_keys"]) {
		t.Errorf("the policy has %v and %v", got["retention"], got["redact_keys"])
	}
	d.Do(200, "POST", rig.MethodPath("tax", "net")+"/pin", object{"reason": "since then"})
	p.click(".message >> " + button("Undo"))
	p.sees(".messages >> text=Undone.")
	if got := d.Get("/v1/policy")["retention"].(object)["value_hours"]; got == 48.0 {
		t.Error("the undo of the message took back something else")
	}
	p.at("#/audit")
	p.sees("tr:has-text('policy') .badge:text-is('undone')")
	p.click("tr:has-text('since then') >> " + button("Undo"))
	p.fill("dialog input", "by mistake")
	p.click("dialog >> " + button("Undo"))
	p.sees("tr:has-text('since then') .badge:text-is('undone')", "tr:has-text('by mistake')")
	if d.Artifact("tax", "net")["pinned"] == true {
		t.Error("the method is still pinned")
	}
	p.fill("input[type=search]", "nobody")
	p.do("press", "input[type=search]", "Enter")
	p.sees("text=Nothing matches.")
	p.clean()
}

// System shows what the daemon says of itself: its runners, the sandbox's layers, the store, the model; no replicas
// where there are none.
func TestOpsSystem(t *testing.T) {
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {programNet60}}))
	d.Call(d.Session("tax"), "net", 1000)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/system")
	v := d.Get("/v1/version")
	p.sees("dt:text-is('Provider') + dd:text-is('"+v["provider"].(string)+"')",
		"dt:text-is('Model') + dd:text-is('scripted')", "dt:text-is('Kind') + dd:text-is('"+v["store"].(string)+"')",
		".badge:text-is('ready')",
		"dt:text-is('Runners') + dd:has-text('warm')", "dt:text-is('Journal') + dd:has-text('commit')")
	p.lacks("h2:text-is('Replicas')")
	for layer := range v["sandbox"].(object)["layers"].(object) {
		p.sees("table[aria-label=Layers] tr:has-text('" + strings.ReplaceAll(layer, "_", " ") + "')")
	}
	p.click("summary:has-text('denial')")
	p.sees("table[aria-label=Probes] tr >> nth=1")
	p.accessible("System with its probes")
	p.clean()
}
