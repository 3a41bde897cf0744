package replicas

import (
	"net/url"
	"regexp"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Read reads what the daemons hold, which is the same in all of them. lost says by epoch how many faults may each have
// cost a flight. Readers are stopped once they have what the histories have.
func Read(all []*rig.Daemon, m *rig.Model, sessions []Session, lost map[string]int, readers map[string]*Reader) State {
	s := State{Sessions: sessions, History: map[string][]Record{}, Counter: map[string]int{},
		Namespaces: map[string]Namespace{}}
	for i, session := range sessions {
		d := all[i%len(all)].In(session.Namespace)
		for _, r := range d.History(session.ID) {
			summary, _ := r["outcome_summary"].(map[string]any)
			seq, _ := r["seq"].(float64)
			s.History[session.ID] = append(s.History[session.ID], Record{CallID: text(r["call_id"]),
				Method: text(r["method_name"]), Seq: int(seq), OK: summary["ok"] == true})
		}
		value, _ := d.Get("/v1/sessions/" + session.ID + "/context")["value"].(float64)
		s.Counter[session.ID] = int(value)
	}
	requests := forges(m)
	for i, name := range []string{"", capped} {
		d := all[i%len(all)].In(name)
		space := Namespace{Methods: map[string]Method{}, Usage: usage(d)}
		for _, r := range s.of(name) {
			if _, seen := space.Methods[r.Method]; !seen && r.OK {
				got := method(d, r.Method)
				got.Forges, got.Lost = requests[r.Method], lost[epochOf.FindString(r.Method)]
				if r.Method != counter(name) { // whose one program is never replaced, and which has most calls
					got.Unkept = unkept(d, r.Method)
				}
				space.Methods[r.Method] = got
			}
		}
		if reader := readers[name]; reader != nil {
			reader.Await(len(s.of(name)))
			space.Events, space.Streams = reader.Stop()
		}
		s.Namespaces[name] = space
	}
	return s
}

var epochOf = regexp.MustCompile(`[0-9]+`)

// forges counts the requests for a first program by method.
func forges(m *rig.Model) map[string]int {
	out := map[string]int{}
	for _, q := range m.Questions() {
		if q.Kind == "forge" {
			out[q.Method]++
		}
	}
	return out
}

func method(d *rig.Daemon, name string) Method {
	successes, _ := d.Artifact(role, name)["success_count"].(float64)
	out := Method{Successes: int(successes)}
	for _, g := range d.List(rig.MethodPath(role, name) + "/generations") {
		n, _ := g["success_count"].(float64)
		out.Generations = append(out.Generations, Generation{text(g["id"]), text(g["code_checksum"]), int(n)})
	}
	return out
}

// unkept counts the ok calls that a program answered which became no generation.
func unkept(d *rig.Daemon, name string) (n int) {
	for _, e := range d.List("/v1/calls?role=" + role + "&method=" + name + "&status=ok") {
		if text(e["generation"]) == "" {
			n++
		}
	}
	return n
}

// usage reads what was called and spent, whatever the clocks said.
func usage(d *rig.Daemon) Usage {
	const days = 24 * time.Hour
	u := Usage{Calls: map[string]int{}}
	since, until := time.Now().Add(-2*days).UTC().Format(time.RFC3339),
		time.Now().Add(7*days).UTC().Format(time.RFC3339)
	rows, _ := d.Get("/v1/usage?by=method&since=" + url.QueryEscape(since) + "&until=" +
		url.QueryEscape(until))["data"].([]any)
	number := func(row map[string]any, name string) int { n, _ := row[name].(float64); return int(n) }
	for _, r := range rows {
		row := r.(map[string]any)
		// else a program was paid for whose call was lost, as when the daemon was killed meanwhile
		if n := number(row, "calls"); n > 0 {
			u.Calls[text(row["key"])] += n
		}
		u.Tokens += number(row, "prompt_tokens") + number(row, "completion_tokens")
		u.Estimated += number(row, "estimated_tokens")
	}
	return u
}

func text(v any) string { s, _ := v.(string); return s }
