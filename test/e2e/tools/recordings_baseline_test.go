package tools

import (
	"bytes"
	"os"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The traces before and after programs are kept, against the recorded ones (docs/baselines) and each other.
func TestBaselines(t *testing.T) {
	t.Parallel()
	type step struct {
		role, method string
		args         []any
	}
	steps := []step{{"calculator", "add", []any{2, 3}}, {"calculator", "add", []any{40, 2}}, {"calculator", "solve", []any{"2x + 5 = 17"}},
		{"text_tools", "slugify", []any{"Crème Brûlée: 10 Tips"}}, {"text_tools", "slugify", []any{"A b"}}, {"calculator", "solve", []any{"3x = 9"}}}
	trace := func(reads bool) (text []byte, values []any, asked float64) {
		d := rig.Start(t, nil)
		d.Policy(map[string]any{"artifact_read_enabled": reads})
		s := d.Session("calculator")
		for _, c := range steps {
			r := d.Invoke(s, map[string]any{"role": c.role, "method": c.method, "args": c.args})
			e := d.LogOf(r)
			line := map[string]any{"value": r.Outcome.Value}
			for _, k := range []string{"role", "method", "args", "outcome_status", "outcome_error_type", "program_source", "artifact_hit", "artifact_generation_trigger", "generation_attempt", "lifecycle_state", "failure_class"} {
				line[k] = e[k]
			}
			line["selection"] = r.Program.Selection.Decision + " " + r.Program.Selection.Reason
			text = append(append(text, rig.MustJSON(line)...), '\n')
			values = append(values, r.Outcome.Value)
			n, _ := e["generation_attempt"].(float64)
			asked += n
		}
		return text, values, asked
	}
	before, valuesBefore, askedBefore := trace(false)
	after, valuesAfter, askedAfter := trace(true)
	if !rig.Equal(valuesBefore, any(valuesAfter)) || askedAfter >= askedBefore {
		t.Errorf("values %v and %v, %v and %v questions to the model", valuesBefore, valuesAfter, askedBefore, askedAfter)
	}
	for name, got := range map[string][]byte{"before": before, "after": after} {
		file := "../../../docs/baselines/2026-11-21/" + name + ".jsonl"
		if os.Getenv("RECURGENTD_WRITE_BASELINES") != "" {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s (%v):\n%s\nis on file:\n%s", name, err, got, want)
		}
	}
}
