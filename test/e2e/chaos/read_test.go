package chaos

import (
	"strings"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const role = "counter"

// Read reads what the daemon holds. faults says by epoch how many faults may each have cost a flight.
func Read(d *rig.Daemon, m *rig.Model, sessions []Session, faults map[string]int) State {
	s := State{Sessions: sessions, History: map[string][]Record{}, Counter: map[string]int{}, Methods: map[string]Method{}}
	forges := map[string]int{} // by method
	for _, q := range m.Questions() {
		if q.Kind == "forge" {
			forges[q.Method]++
		}
	}
	for _, session := range sessions {
		for _, r := range d.History(session.ID) {
			summary, _ := r["outcome_summary"].(map[string]any)
			seq, _ := r["seq"].(float64)
			s.History[session.ID] = append(s.History[session.ID], Record{CallID: text(r["call_id"]), Method: text(r["method_name"]), Seq: int(seq), OK: summary["ok"] == true})
		}
		value, _ := d.Get("/v1/sessions/" + session.ID + "/context")["value"].(float64)
		s.Counter[session.ID] = int(value)
		for _, r := range s.History[session.ID] {
			if _, seen := s.Methods[r.Method]; !seen && r.OK {
				epoch := strings.TrimLeft(r.Method, "abcdefghijklmnopqrstuvwxyz")
				s.Methods[r.Method] = method(d, r.Method, forges[r.Method], faults[epoch])
			}
		}
	}
	return s
}

func method(d *rig.Daemon, name string, forges, faults int) Method {
	successes, _ := d.Artifact(role, name)["success_count"].(float64)
	out := Method{Successes: int(successes), Forges: forges, Faults: faults}
	for _, g := range d.List(rig.MethodPath(role, name) + "/generations") {
		n, _ := g["success_count"].(float64)
		out.Generations = append(out.Generations, Generation{text(g["id"]), int(n)})
	}
	return out
}

func text(v any) string { s, _ := v.(string); return s }
