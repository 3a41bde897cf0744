package app

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"
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
