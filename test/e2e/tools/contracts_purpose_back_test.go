package tools

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// registered registers the role's contract and returns the reply.
func registered(d *rig.Daemon, contract object) object {
	d.T.Helper()
	return d.Do(http.StatusOK, http.MethodPut, "/v1/tools/units", contract).Object(d.T)
}

// wantBack checks that the reply names gen-1 as what came back and breaks the example, that the inbox has it, and that
// it answers.
func wantBack(d *rig.Daemon, reply object, s string, example any) object {
	d.T.Helper()
	back, _ := reply["brought_back"].([]any)
	if len(back) != 1 || !rig.Equal(back[0], object{"role": "units", "method": "convert", "generation": "gen-1",
		"broken_examples": list(example)}) {
		d.T.Errorf("the reply says that %v came back", reply["brought_back"])
	}
	inbox := d.List("/v1/inbox?kind=approval")
	if len(inbox) != 1 {
		d.T.Fatalf("the inbox has %v", inbox)
	}
	e := inbox[0]["evidence"].(object)
	if e["generation"] != "gen-1" || e["answers_now"] != "gen-1" || e["breaks"] != 1.0 ||
		!rig.Equal(e["broken_examples"], list(example)) {
		d.T.Errorf("the evidence: %v", e)
	}
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	return inbox[0]
}

// changedTwice has gen-2 made for Kelvin, with an example of that, after gen-1 for Fahrenheit.
func changedTwice(t *testing.T, answers ...any) (d *rig.Daemon, m *rig.Model, s string, id any) {
	t.Helper()
	d, m, s = warm(t, append([]any{progKelvin}, answers...)...)
	registers(d, object{"purpose": toKelvin})
	d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
	return d, m, s, examples(d, "units", "convert", example(273.15, 0))[0].(object)["id"]
}

// undoPut undoes the newest change of a tool and returns the reply.
func undoPut(d *rig.Daemon) object {
	d.T.Helper()
	for _, e := range d.List("/v1/maintenance/audit") {
		if e["action"] == "tool.put" {
			return d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/audit/"+e["id"].(string)+"/undo",
				object{}).Object(d.T)
		}
	}
	d.T.Fatal("no tool was put")
	return nil
}

// A program that words set back bring back is held to the examples of now: what it breaks stands in the reply and in
// the inbox, until a person decides.
func TestPurposeSetBackAgainstExamples(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"approve", "stay", "drop the example", "change it again", "undo"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			d, m, s, id := changedTwice(t)
			one := wantBack(d, registered(d, object{"purpose": toFahrenheit}), s, id)
			decide := func(i int) {
				op := one["operations"].([]any)[i].(object)
				d.Do(http.StatusOK, op["method"].(string), op["path"].(string), op["body"])
			}
			value, generation := 32.0, "gen-1"
			switch end {
			case "approve":
				decide(0)
			case "stay":
				decide(1)
				value, generation = 273.15, "gen-2"
			case "drop the example":
				d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("units", "convert")+"/examples",
					object{"examples": list()})
			case "change it again":
				if back := registered(d, object{"purpose": toKelvin})["brought_back"]; back != nil {
					t.Errorf("%v came back", back)
				}
				value, generation = 273.15, "gen-2"
			case "undo":
				if back := undoPut(d)["brought_back"]; back != nil {
					t.Errorf("%v came back", back)
				}
				value, generation = 273.15, "gen-2"
			}
			if left := d.List("/v1/inbox?kind=approval"); len(left) != 0 {
				t.Errorf("the inbox still has %v", left)
			}
			wantFresh(d, d.Call(s, "convert", 0), value, generation)
			wantAsked(t, m, 2)
		})
	}
}

// The undo of the change that a program was written for brings the one of before back in the same way, and so does a
// restore from the archive.
func TestPurposeUndoneAgainstExamples(t *testing.T) {
	t.Parallel()
	d, _, s, id := changedTwice(t)
	wantBack(d, undoPut(d), s, id)
	d.Do(http.StatusNoContent, http.MethodDelete, rig.MethodPath("units", "convert"), nil)
	registers(d, object{"purpose": toKelvin})
	registers(d, object{"purpose": toFahrenheit})
	wantBack(d, d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/restore",
		object{"role": "units", "method": "convert"}).Object(t), s, id)
}

// A change of a tool with many methods looks at eight of them, and says how many it left.
func TestPurposeSetBackOfManyMethods(t *testing.T) {
	t.Parallel()
	d, _, _, _ := changedTwice(t)
	for i := range 9 {
		method := "convert" + string(rune('a'+i))
		for _, p := range []object{{"purpose": toFahrenheit}, {"purpose": toKelvin}} {
			registers(d, p)
			code := progFahrenheit
			if p["purpose"] == toKelvin {
				code = progKelvin
			}
			d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("units", method), object{"code": code})
		}
		examples(d, "units", method, example(273.15, 0))
	}
	reply := registered(d, object{"purpose": toFahrenheit})
	if back, _ := reply["brought_back"].([]any); len(back) != 8 || reply["unchecked_methods"] != 2.0 {
		t.Errorf("%d came back, %v are unchecked", len(back), reply["unchecked_methods"])
	}
}

// A method and its tool show as stale what its call would report: of what answers, neither degraded nor made for
// another contract.
func TestStaleIsAsTheCallSays(t *testing.T) {
	t.Parallel()
	stale := func(d *rig.Daemon, want float64) {
		t.Helper()
		for _, path := range []string{"/v1/tools/units", "/v1/tools?q=" + url.QueryEscape("units")} {
			tool := d.Do(http.StatusOK, http.MethodGet, path, nil).Object(t)
			if all, is := tool["data"].([]any); is {
				tool = all[0].(object)
			}
			if got := tool["health"].(object)["stale"]; got != want {
				t.Errorf("%s counts %v stale methods, want %v", path, got, want)
			}
		}
	}
	t.Run("another contract", func(t *testing.T) {
		t.Parallel()
		d, _, s := warm(t, progKelvin)
		registers(d, object{"purpose": toKelvin, "deliverable": object{"type": "number"}})
		d.WantValue(d.Call(s, "convert", 0), 273.15, "repaired")
		registers(d, object{"purpose": toFahrenheit})
		wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
		stale(d, 0)
	})
	t.Run("degraded", func(t *testing.T) {
		t.Parallel()
		d, _, s := warm(t, progKelvin)
		d.Policy(delaysOfHours)
		d = d.One()
		registers(d, object{"purpose": toKelvin})
		d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
		registers(d, object{"purpose": toFahrenheit})
		stale(d, 0)
		d.Policy(object{"approval_required": true})
		operate(d, "units", "convert", "approve", object{"generation": "gen-2"})
		stale(d, 1) // the only one that may answer was made for other words
		if a := d.Artifact("units", "convert"); a["stale"] != "purpose" {
			t.Errorf("the method shows stale as %v", a["stale"])
		}
		d.Policy(object{"approval_required": false})
		stale(d, 0)
		wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	})
}
