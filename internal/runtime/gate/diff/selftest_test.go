package diff

import (
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/corpus"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/selftest"
)

// The answers that a canary runner expects of the engine are those of the Go toolchain, and the engine gives them.
func TestAnswersAreThoseOfGo(t *testing.T) {
	programs, err := selftest.Programs()
	if err != nil {
		t.Fatal(err)
	}
	if len(programs) < 30 {
		t.Fatalf("only %d programs", len(programs))
	}
	var entries []entry
	for _, p := range programs {
		body := p.Source[len("package tool\n"):]
		entries = append(entries, entry{name: p.Name, source: corpus.Head(body) + body, calls: []string{"[]"}})
	}
	native := runNatively(t, entries)
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range programs {
		want := native[p.Name+"#0"]
		if want.Error != "" || want.Panic != "" || want.Encode != "" || !sameJSON(want.Value, json.RawMessage(p.Want)) {
			t.Errorf("%s: natively %s, expected is %s", p.Name, want.Value, p.Want)
		}
		entries[i].source = p.Source
		compare(t, runHere(t, g, entries[i])[0], want)
	}
}
