package tools

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The two scenarios of seed 001's baselines, the assistant with Google and Yahoo News and the philosophy debate,
// over recorded programs and local sites: their traces before programs are read (each call asks the model) and after are those
// on file, and end in the same values with fewer questions.
func TestBaselineScenarios(t *testing.T) {
	t.Parallel()
	google, yahoo := rig.NewSource(t, `{"items":[{"title":"G1"},{"title":"G2"}]}`), rig.NewSource(t, `{"items":[{"title":"Y1"}]}`)
	type step struct {
		role, method string
		args         []any
	}
	scenarios := []struct {
		name  string
		steps []step
	}{
		{"assistant-google-yahoo", []step{
			{"assistant", "ask", []any{"what is new on Google News?", google.URL}}, {"assistant", "ask", []any{"and on Yahoo News?", yahoo.URL}},
			{"assistant", "ask", []any{"once more Google News", google.URL}}, {"google news", "read", []any{google.URL}}, {"yahoo news", "read", []any{yahoo.URL}}}},
		{"philosophy-debate", []step{
			{"debate", "host", []any{"virtue", 2}}, {"debate", "host", []any{"fear", 1}}, {"stoic", "argue", []any{"virtue", 3}}, {"epicurean", "argue", []any{"virtue", 3}}}},
	}
	hosts := strings.TrimPrefix(google.URL, "http://") + "," + strings.TrimPrefix(yahoo.URL, "http://")
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			dir := "../../../docs/baselines/2026-11-21/" + c.name
			run := func(reads bool) (text []byte, values []any, asked float64) {
				d := rig.Start(t, nil, "--provider", "replay", "--recording", rig.Absolute(t, dir+".recording.jsonl"), "--fetch-allow", hosts)
				d.Policy(map[string]any{"artifact_read_enabled": reads})
				s := d.Session(c.steps[0].role)
				for _, st := range c.steps {
					r := d.Invoke(s, map[string]any{"role": st.role, "method": st.method, "args": st.args})
					values = append(values, r.Outcome.Value)
				}
				calls := d.List("/v1/calls?session_id=" + s)
				slices.Reverse(calls) // oldest first; delegated calls before the one that made them
				for _, e := range calls {
					line := map[string]any{}
					for _, k := range []string{"role", "method", "args", "depth", "outcome_status", "outcome_error_type", "program_source", "artifact_hit", "artifact_generation_trigger", "generation_attempt", "lifecycle_state", "failure_class"} {
						line[k] = e[k]
					}
					n, _ := e["generation_attempt"].(float64)
					asked += n
					sel := e["selection"].(map[string]any)
					line["selection"] = sel["decision"].(string) + " " + sel["reason"].(string)
					text = append(append(text, rig.MustJSON(line)...), '\n')
				}
				for url, name := range map[string]string{google.URL: "http://google.example", yahoo.URL: "http://yahoo.example"} {
					text = bytes.ReplaceAll(text, []byte(url), []byte(name))
				}
				return text, values, asked
			}
			before, valuesBefore, askedBefore := run(false)
			after, valuesAfter, askedAfter := run(true)
			if !rig.Equal(valuesBefore, any(valuesAfter)) || askedAfter >= askedBefore {
				t.Errorf("values %v and %v, %v and %v questions to the model", valuesBefore, valuesAfter, askedBefore, askedAfter)
			}
			for suffix, got := range map[string][]byte{".before.jsonl": before, ".after.jsonl": after} {
				if os.Getenv("RECURGENTD_WRITE_BASELINES") != "" {
					if err := os.WriteFile(dir+suffix, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if want, err := os.ReadFile(dir + suffix); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s (%v):\n%s\nis on file:\n%s", suffix, err, got, want)
				}
			}
		})
	}
}
