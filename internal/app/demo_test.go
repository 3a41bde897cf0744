package app

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/programs"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// The demo recording contains every recorded program verbatim, and marks hand-written ones.
func TestDemoRecordingIsHonest(t *testing.T) {
	t.Parallel()
	type line struct{ Role, Method, Kind, Origin, Code string }
	read := func(data []byte) (list []line) {
		for l := range bytes.Lines(data) {
			var v line
			if err := json.Unmarshal(l, &v); err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
		return list
	}
	recorded, err := os.ReadFile("../../test/e2e/tools/testdata/forge.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	demo, models := read(demoRecording), read(recorded)
	for i := range models {
		models[i].Origin = "model"
		if !slices.Contains(demo, models[i]) {
			t.Errorf("the demo recording does not hold %s.%s as it was recorded", models[i].Role, models[i].Method)
		}
	}
	for _, l := range demo {
		if l.Origin != "written" && !slices.Contains(models, l) {
			t.Errorf("%s.%s is neither recorded nor marked as written", l.Role, l.Method)
		}
	}
}

// Every program of the demo recording declares what it takes, and reads all of it: calls that do not fit are refused.
func TestDemoDeclaresWhatItTakes(t *testing.T) {
	t.Parallel()
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for data := range bytes.Lines(demoRecording) {
		var l provider.Line
		if err := json.Unmarshal(data, &l); err != nil {
			t.Fatal(err)
		}
		name := l.Role + "." + l.Method
		p, refused := g.Check(l.Code)
		if refused != nil {
			t.Errorf("%s: %s", name, refused.Message)
			continue
		}
		takes, err := programs.Declared(l.Declaration, &p.Facts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !takes.Binds() || takes.Summary == "" || takes.Open || len(takes.Parameters) != len(l.Listed()) {
			t.Errorf("%s takes %s and declares %s", name, agent.Encoded(takes), l.Parameters)
		}
	}
}
