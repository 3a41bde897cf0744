package tools

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Where people have taken back all that they had said of a role, there is nothing that its programs may not do: the one
// that serves goes on, and nobody is asked; one that was made before anybody had said something comes back.
func TestPurposeTakenBack(t *testing.T) {
	t.Parallel()
	for name, takesBack := range map[string]func(d *rig.Daemon, put string){
		"undo": func(d *rig.Daemon, put string) { undo(d, put, http.StatusOK) },
		"put of nothing": func(d *rig.Daemon, _ string) {
			d.Do(http.StatusOK, http.MethodPut, "/v1/tools/units",
				object{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{"units.convert": {progFahrenheit, progKelvin}})
			d := rig.Start(t, m)
			registers(d, object{"purpose": toFahrenheit})
			put := actID(d)
			s := d.Session("units")
			d.WantValue(d.Call(s, "convert", 0), 32, "generated")
			takesBack(d, put)
			for range 2 { // the first one registers the role again
				wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
			}
			registers(d, object{"purpose": toKelvin})
			d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
			wantAsked(t, m, 2)
		})
	}
	m := rig.NewModel(t, rig.Script{"units.convert": {progFahrenheit, progKelvin}})
	d := rig.Start(t, m)
	s := d.Session("units")
	d.WantValue(d.Call(s, "convert", 0), 32, "generated")
	registers(d, object{"purpose": toKelvin})
	put := actID(d)
	d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
	undo(d, put, http.StatusOK)
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	wantAsked(t, m, 2)
}
