//go:build ops

package console

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Live, the call log, a method's calls, a session's history and a trace show the beginnings of values, as text; for one
// who may not see a call there is nothing.
func TestOpsValuesInLists(t *testing.T) {
	m := rig.NewModel(t, rig.Script{"text.echo": {rig.ProgEcho}, "text.nothing": {rig.ProgGiven}})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	s := d.Session("text")
	d.Call(s, "echo", "<b>first</b>")
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/live")
	p.sees("tr:has-text('text.echo') code.value:has-text('<b>first</b>')", "text=Following")
	d.Call(s, "echo", "second")
	p.sees("tr:has-text('text.echo') code.value:has-text('second')")
	for _, hash := range []string{"#/live?log=1", "#/tools/text/echo?tab=calls", "#/sessions/" + s} {
		p.at(hash)
		p.sees("tr:has-text('echo') code.value:has-text('<b>first</b>')",
			"tr:has-text('echo') code.value:has-text('second')")
	}
	p.accessible("a session with values")
	p.clean()
}
