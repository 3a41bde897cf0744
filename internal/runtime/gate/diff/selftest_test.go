package diff

import (
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
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
	var corpus []entry
	for _, p := range programs {
		body := p.Source[len("package tool\n"):]
		corpus = append(corpus, entry{name: p.Name, source: head(body) + body, calls: []string{"[]"}})
	}
	native := runNatively(t, corpus)
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range programs {
		want := native[p.Name+"#0"]
		if want.Error != "" || want.Panic != "" || want.Encode != "" || !sameJSON(want.Value, json.RawMessage(p.Want)) {
			t.Errorf("%s: natively %s, expected is %s", p.Name, want.Value, p.Want)
		}
		corpus[i].source = p.Source
		compare(t, runHere(t, g, corpus[i])[0], want)
	}
}
