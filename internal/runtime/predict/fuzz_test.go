package predict

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// FuzzMessages predicts with arbitrary inputs and history. The result is a typed error, or messages with reproducible
// bytes, whose pairs alternate and whose first and last are those of a request without history.
func FuzzMessages(f *testing.F) {
	f.Add(`{"question":"q","history":{"messages":[{"question":"q1","answer":"a1"}]}}`)
	f.Add(`{"question":"\ud800","history":{"messages":[{"question":{"b":1e999,"a":"` + "\xff" +
		`"},"answer":null,"score":0}]}}`)
	f.Add(`{"question":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `,"history":null}`)
	f.Add(`{"question":1,"history":{"messages":[5]}}`)
	s, err := contract.ParseSignature(json.RawMessage(
		`{"inputs":[{"name":"question"},{"name":"history","type":"history"}],"outputs":[{"name":"answer"},{"name":"score","type":"number"}]}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := Request{Signature: s}
		if json.Unmarshal([]byte(text), &r.Inputs) != nil {
			return
		}
		got, err := Messages(r)
		var bad *agent.InputError
		if err != nil {
			if !errors.As(err, &bad) || bad.Code == "" || bad.Pointer == "" || bad.Detail == "" {
				t.Fatalf("not a typed error: %v", err)
			}
			return
		}
		again, err := Messages(r)
		if err != nil || cmp.Diff(got, again) != "" {
			t.Fatalf("not the same twice: %v", err)
		}
		r.Inputs = maps.Clone(r.Inputs)
		delete(r.Inputs, "history")
		plain, err := Messages(r)
		if err != nil || len(plain) != 2 || len(got)%2 != 0 || got[0] != plain[0] || got[len(got)-1] != plain[1] {
			t.Fatalf("history changed the request: %v\n%q\n%q", err, plain, got)
		}
		for i, m := range slices.Clip(got[1 : len(got)-1]) {
			if m.Role != []string{"user", "assistant"}[i%2] {
				t.Fatalf("message %d is of %s", i+1, m.Role)
			}
		}
	})
}
