package contract

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// The examples in the documentation are valid.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, m := range regexp.MustCompile("(?s)```json (\\w+)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		kind, example := m[1], json.RawMessage(m[2])
		seen[kind]++
		switch kind {
		case "contract":
			var k agent.Contract
			if err := json.Unmarshal(example, &k); err != nil {
				t.Fatal(err)
			}
			s, err := Compile(k.Deliverable)
			if err != nil {
				t.Fatal(err)
			}
			if v := s.Check(json.RawMessage(
				`{"status":"ok","movies":[]}`)); v == nil || v.Mismatch != MismatchMinItems {
				t.Errorf("the first example does not bite: %+v", v)
			}
		case "deliverable":
			if s, err := Compile(example); err != nil || s.Empty() {
				t.Errorf("%s: %v", example, err)
			}
		case "signature":
			if _, err := ParseSignature(example); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("an example of unknown kind %q", kind)
		}
	}
	if seen["contract"] == 0 || seen["deliverable"] < 2 || seen["signature"] == 0 {
		t.Errorf("examples are missing: %v", seen)
	}
}
