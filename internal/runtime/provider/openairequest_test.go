package provider

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/recurgentd/recurgentd/internal/contract"
)

// The example of the prompts is what the tool's schema asks for, since some servers hold a model to them.
func TestExampleFitsTheSchema(t *testing.T) {
	t.Parallel()
	checked, err := contract.CompileStored(json.RawMessage(submitParameters))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"system.tmpl", "short.tmpl"} {
		text, err := os.ReadFile("../prompt/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := bytes.Cut(text, []byte("\nparameters: "))
		line, rest, _ := bytes.Cut(after, []byte("\nreturns: "))
		returns, _, _ := bytes.Cut(rest, []byte("\n"))
		if !found {
			t.Fatalf("%s has no example", name)
		}
		call := `{"code":"package tool","summary":"x","parameters":` + string(line) + `,"returns":` + string(returns) + "}"
		if v := checked.Check(json.RawMessage(call)); v != nil {
			t.Errorf("%s: %s", name, v.Message)
		}
	}
}
