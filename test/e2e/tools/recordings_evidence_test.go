package tools

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// evidenceDir holds the recordings and what follows from them.
const evidenceDir = "../../../docs/baselines/2026-11-29/"

// A question is a call of the person in a scenario. A right answer holds all of want and nothing of not; with neither,
// only an error is right. The note is what the person says of a wrong answer.
type question struct {
	scenario, role, method string
	args                   []any
	want, not              []string
	note                   string
	before                 func() // what happened in the world since the last one
}

// A trace is what the calls of a run left in the log, and the sums over them by scenario.
type trace struct {
	lines  []byte
	sums   map[string]map[string]int
	counts map[string]any // of the report on the use of history
}

// withoutMemory has the daemon forget what the policy can have it forget. Beside it each call has a session of its own,
// and no verdict is sent.
var withoutMemory = map[string]any{"artifact_read_enabled": false, "fixtures_enabled": false,
	"known_tools_prompt_limit": 0, "history_preview_limit": 0}

// The programs that a model wrote for the scenarios answer as on file, with memory and without: traces, table, picture
// and the numbers of the report on recursion. With RECURGENTD_RECORD_BASELINES, the base URL of a model's server, they
// are recorded anew.
func TestMemoryPays(t *testing.T) {
	rig.OnDisk(t, "each replica reads the recording by itself, from its beginning")
	t.Parallel()
	var before, after trace
	t.Run("runs", func(t *testing.T) {
		for name, to := range map[string]*trace{"before": &before, "after": &after} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				*to = evidence(t, name)
			})
		}
	})
	if t.Failed() || before.sums == nil || after.sums == nil {
		return // one of them was not asked for
	}
	for _, s := range evidenceScenarios {
		was, is := before.sums[s], after.sums[s]
		if is["requests"] >= was["requests"] || is["tokens"] >= was["tokens"] || is["right"] < was["right"] ||
			s == "control" && is["right"] != was["right"] {
			t.Errorf("%s: memory gains nothing: %v, then %v", s, was, is)
		}
	}
	runs := map[string]trace{"before": before, "after": after}
	onFile(t, "comparison.svg", evidencePicture(runs))
	onFile(t, "report.md", between(t, "report.md", evidenceTable(runs)))
	onFile(t, "recursion.md", between(t, "recursion.md", evidenceHistory(after.counts)))
}

// evidence makes the calls of all scenarios and returns their trace.
func evidence(t *testing.T, name string) trace {
	recording := evidenceDir + name + ".recording.jsonl"
	args, env := []string{"--provider", "replay"}, []string(nil)
	if model := os.Getenv("RECURGENTD_RECORD_BASELINES"); model != "" {
		args, env = []string{"--provider", "record", "--provider-timeout", "1h", "--model", "assistant"},
			[]string{"OPENAI_BASE_URL=" + model}
		if err := os.WriteFile(recording, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	d, ahead := rig.StartAheadIn(t, nil, env, append(args, "--recording", rig.Absolute(t, recording), "--fetch-allow",
		w.hosts(), "--durability", "interval:1s")...)
	if env != nil {
		d.HTTP.Timeout = time.Hour
	}
	if name == "before" {
		d.Policy(withoutMemory)
	}
	sessions, seen, out := map[string]string{}, map[string]bool{}, trace{sums: map[string]map[string]int{"all": {}}}
	var entries []object
	for _, q := range w.questions(ahead) {
		if q.before != nil {
			q.before()
		}
		if sessions[q.scenario] == "" || name == "before" {
			sessions[q.scenario] = d.Session(q.role)
		}
		r := d.Invoke(sessions[q.scenario], object{"method": q.method, "args": q.args, "role": q.role})
		said := object{"scenario": q.scenario, "value": r.Outcome.Value, "judged": q.judge(r)}
		if said["judged"] != "right" && name == "after" {
			state, generation := callWrong(d, r, q.note)
			said["correction"] = state
			if generation != "" {
				said["correction_usage"] = keptGeneration(d, q.role, q.method, generation)["forge_usage"]
			}
		}
		calls := d.List("/v1/calls?session_id=" + sessions[q.scenario])
		slices.Reverse(calls) // oldest first; delegated calls before the one that made them
		for _, e := range calls {
			if id := e["call_id"].(string); !seen[id] {
				seen[id] = true
				e["scenario"] = q.scenario
				if id == r.CallID {
					maps.Copy(e, said)
				}
				entries = append(entries, e)
			}
		}
	}
	out.counts = d.Get("/v1/reports/history-usage?since=2000-01-01T00:00:00Z")
	out.write(entries)
	if text, err := os.ReadFile(recording); err != nil || bytes.Count(text,
		[]byte("\n")) != out.sums["all"]["requests"] {
		t.Errorf("%d requests, and as many lines are not in %s (%v)", out.sums["all"]["requests"], recording, err)
	}
	out.lines = w.named(out.lines)
	onFile(t, name+".jsonl", out.lines)
	return out
}

// judge says what the person thinks of an answer: right, wrong, or none where it is an error that ought to be none.
func (q question) judge(r rig.Reply) string {
	if !r.Outcome.OK {
		if q.want == nil && q.not == nil {
			return "right"
		}
		return "none"
	}
	value := string(rig.MustJSON(r.Outcome.Value))
	lacks := func(s string) bool { return !strings.Contains(value, s) }
	if q.want == nil && q.not == nil || slices.ContainsFunc(q.want, lacks) ||
		slices.ContainsFunc(q.not, func(s string) bool { return !lacks(s) }) {
		return "wrong"
	}
	return "right"
}

// callWrong sends the verdict that an answer is wrong, and waits for the correction that follows.
func callWrong(d *rig.Daemon, r rig.Reply, note string) (state, generation string) {
	for {
		c, _ := verdict(d, r, object{"verdict": "wrong", "note": note})["correction"].(object)
		state, _ = c["state"].(string)
		generation, _ = c["generation"].(string)
		if state != "queued" && state != "running" {
			return state, generation
		}
	}
}

var traceFields = strings.Fields(
	`scenario role method args depth outcome_status outcome_error_type program_source artifact_hit artifact_generation_trigger generation_attempt lifecycle_state
	failure_class repair_attempted repair_succeeded conversation_history_size history_access_detected history_query_patterns weak_success weak_success_reasons
	user_correction_detected usage value judged correction correction_usage`)

// write makes a line of each entry and sums up. usage is what the requests cost when they were recorded, with those of
// nested calls.
func (tr *trace) write(entries []object) {
	for _, e := range entries {
		line, failed := object{}, []any{}
		for _, k := range traceFields {
			if v, ok := e[k]; ok && v != "" {
				line[k] = v
			}
		}
		list, _ := e["attempt_failures"].([]any)
		for _, f := range list {
			failed = append(failed, f.(object)["error_type"])
		}
		line["failed_attempts"] = failed
		tr.lines = append(append(tr.lines, rig.MustJSON(line)...), '\n')
		tr.add(e["scenario"].(string), e)
	}
}

// onFile compares a text with the file of that name, or writes it there.
func onFile(t *testing.T, name string, got []byte) {
	t.Helper()
	if os.Getenv("RECURGENTD_WRITE_BASELINES") != "" {
		if err := os.WriteFile(evidenceDir+name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(evidenceDir + name)
	is, was := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(is), len(was)) {
		if !bytes.Equal(is[i], was[i]) {
			t.Fatalf("line %d of %s:\n%s\nis on file:\n%s", i+1, name, is[i], was[i])
		}
	}
	if err != nil || len(is) != len(was) {
		t.Errorf("%s (%v): %d lines, %d on file", name, err, len(is), len(was))
	}
}
