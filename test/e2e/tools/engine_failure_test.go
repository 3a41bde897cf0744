package tools

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const failures = "recurgent_engine_failures_total"

// programs that meet a fault of the engine when their argument is bad: in a question to the daemon, from which they try to recover,
// in their result, and in their memory.
var programs = map[string]string{
	"question": rig.Program("\tdefer func() { recover() }()\n\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tfunc() {\n\t\t\tdefer func() { recover() }()\n" +
		"\t\t\tcall.Tool(\"other\").Call(\"m\", \"a fault while running\")\n\t\t}()\n\t}\n\treturn \"survived\", nil"),
	"result": rig.Program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"a fault while running\", nil\n\t}\n\treturn \"survived\", nil"),
	"memory": rig.Program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tcall.Context[\"k\"] = \"a fault while running\"\n\t}\n\treturn \"survived\", nil"),
}

// written counts the programs that the model was asked for; it is asked for predictions, too.
func written(m *rig.Model) int {
	n := 0
	for _, q := range m.Questions() {
		if q.Role != "" {
			n++
		}
	}
	return n
}

// A fault of the engine ends the call as runner_crash in the engine's words. It asks no model, counts against nobody's health, keeps
// nothing of the runner, and is counted by a metric of its own.
func TestEngineFailureIsNobodysFault(t *testing.T) {
	t.Parallel()
	script := rig.Script{}
	for name, source := range programs {
		script["f."+name] = []any{source}
	}
	model := rig.NewModel(t, script)
	d := rig.StartIn(t, model, []string{rig.Binary + "=" + rig.Named(t, failingName)})
	s := d.Session("f")
	n := 0.0
	for name := range programs {
		d.WantValue(d.Call(s, name, "good"), "survived", "")
		before := d.Artifact("f", name)
		asked := written(model)
		for range 3 {
			got := d.Call(s, name, "bad")
			o := got.Outcome
			if o.OK || o.ErrorType != "runner_crash" || o.ErrorMessage != "the engine failed: planted while running" || o.Metadata["detail"] != "engine" {
				t.Errorf("%s: %+v", name, o)
			}
			if e := d.LogOf(got); e["failure_class"] != "" {
				t.Errorf("%s: logged as %v", name, e["failure_class"])
			}
			n++
		}
		if written(model) != asked {
			t.Errorf("%s: the model was asked for another program", name)
		}
		after := d.Artifact("f", name)
		counts := 0
		for key, was := range before {
			if !strings.HasSuffix(key, "_count") && key != "state" {
				continue
			}
			if counts++; was != after[key] {
				t.Errorf("%s: %s was %v, is %v", name, key, was, after[key])
			}
		}
		if counts < 6 {
			t.Fatalf("an artifact has %d counts: %v", counts, before)
		}
		d.WantValue(d.Call(s, name, "good"), "survived", "")
	}
	if got := d.Metric(failures); got != n {
		t.Errorf("%s is %v, want %v", failures, got, n)
	}
}

// A program that the engine cannot compile for a fault of its own ends the call, too: it is not sent back to the model.
func TestEngineFailureWhileCompiling(t *testing.T) {
	t.Parallel()
	model := rig.NewModel(t, rig.Script{"f.m": {strings.Replace(programs["result"], "func Run", "// a fault while compiling\nfunc Run", 1)}})
	d := rig.StartIn(t, model, []string{rig.Binary + "=" + rig.Named(t, failingName)})
	o := d.Call(d.Session("f"), "m", "good").Outcome
	if o.OK || o.ErrorType != "runner_crash" || o.ErrorMessage != "the engine failed: planted while compiling" {
		t.Errorf("got %+v", o)
	}
	if got := written(model); got != 1 {
		t.Errorf("the model was asked for %d programs", got)
	}
	if got := d.Metric(failures); got != 1 {
		t.Errorf("%s is %v, want 1", failures, got)
	}
}
