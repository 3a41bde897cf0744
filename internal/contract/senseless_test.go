package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Constraints left out of a program's deliverable are not stored, and the rest is checked as before.
func TestWithoutSenseless(t *testing.T) {
	t.Parallel()
	for deliverable, want := range map[string]string{
		`{"type":"array","min_items":1}`:                                          `{"type":"array","min_items":1}`,
		`{"type":"array","minitems":1,"max_items":2}`:                             `{"type":"array"}`,
		`{"type":"hash","required":["a"]}`:                                        `{"required":["a"]}`,
		`{"properties":{"a":5},"additionalProperties":false}`:                     `{"additionalProperties":false,"properties":{"a":true}}`,
		`{"allOf":[{"type":"array"},7]}`:                                          `{"allOf":[{"type":"array"},true]}`,
		`{"not":5,"type":"string"}`:                                               `{"type":"string"}`,
		`{"items":[{"type":"string"}]}`:                                           `{}`,
		`{"constraints":{"properties":{"a/b":{"minLength":-1,"type":"string"}}}}`: `{"constraints":{"properties":{"a/b":{"type":"string"}}}}`,
		`{"type":"object","constraints":{"min_items":2}}`:                         `{"constraints":{},"type":"object"}`,
		`{"min_items":5,"maxItems":2}`:                                            `{"maxItems":2}`,
		`{"patternProperties":{"(":{},"^a":{}}}`:                                  `{"patternProperties":{"^a":{}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`:   `{"type":"object"}`,
		`["array"]`: ``,
		`{"properties":{` + strings.Repeat(`"p":{},`, 3) + many(100) + `"z":{}}}`: `{"properties":{` + manyLeft(100) +
			`"p":{},"z":{}}}`,
	} {
		kept, odd, err := WithoutSenseless(json.RawMessage(deliverable))
		if err != nil || string(kept) != want || (deliverable == want) != (len(odd) == 0) {
			t.Errorf("%s: kept %s, reported %v, %v; want %s", deliverable, kept, odd, err, want)
			continue
		}
		if _, odd, err := compileTolerant(kept); err != nil || len(odd) > 0 {
			t.Errorf("%s: of what is kept %v is senseless, %v", deliverable, odd, err)
		}
	}
	var bad *InvalidError
	if _, _, err := WithoutSenseless(json.RawMessage(`{"$ref":"#/x"}`)); !errors.As(err, &bad) {
		t.Errorf("a reference: %v", err)
	}
	if _, _, err := WithoutSenseless(json.RawMessage(`{"properties":{` + many(400) +
		`"z":{}}}`)); !errors.As(err, &bad) || !strings.Contains(bad.Reason, "more than") {
		t.Errorf("too much of it: %v", err)
	}
}

// many are members with one schema each that has an invalid constraint; manyLeft is what remains of them.
func many(n int) string     { return membersOf(n, `{"minLength":-1}`) }
func manyLeft(n int) string { return membersOf(n, `{}`) }

func membersOf(n int, schema string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"a%03d":%s,`, i, schema)
	}
	return b.String()
}

// The stored deliverable accepts the same values as the program's.
func FuzzWithoutSenseless(f *testing.F) {
	f.Add(`{"type":"array","minitems":1,"items":{"minLength":-1}}`, `["a"]`)
	f.Add(`{"min_items":"3","maxItems":2,"oneOf":[5,{"not":7}]}`, `[]`)
	f.Add(`{"properties":{"a":5},"additionalProperties":false,"constraints":{"min_items":1}}`, `{"a":1}`)
	f.Fuzz(func(t *testing.T, deliverable, value string) {
		before, _, err := compileTolerant(json.RawMessage(deliverable))
		kept, _, kerr := WithoutSenseless(json.RawMessage(deliverable))
		if err != nil || kerr != nil || !json.Valid([]byte(value)) {
			return
		}
		after, odd, err := compileTolerant(kept)
		if err != nil || len(odd) > 0 {
			t.Fatalf("%s: %v, %v", kept, odd, err)
		}
		if a, b := before.Check(json.RawMessage(value)), after.Check(json.RawMessage(value)); (a == nil) != (b == nil) {
			t.Fatalf("%s and %s differ on %s: %v, %v", deliverable, kept, value, a, b)
		}
	})
}
