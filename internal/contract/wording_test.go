package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

func said(purpose, acceptance, failure string) *agent.Contract {
	return &agent.Contract{Purpose: purpose, Acceptance: json.RawMessage(acceptance),
		FailurePolicy: json.RawMessage(failure)}
}

// wordsOf resolves layers of the registry with a role entry by a person.
func wordsOf(l contract.Layers) contract.Words { return contract.NewCache(0).Resolve(l).Words }

// White space, the notation of JSON, and an empty list instead of nothing do not change the prose. Everything else
// does.
func TestWordsThatAreTheSame(t *testing.T) {
	t.Parallel()
	of := func(k *agent.Contract) agent.WordingDigest { return wordsOf(contract.Layers{Role: k}).ByPerson }
	one := of(said("a b", `[{"assert":"x y","n":1}]`, `{"on_error":"return"}`))
	for _, same := range []*agent.Contract{said(" a\n\tb ", `[ {"n": 1.0, "assert": " x  y "} ]`,
		`{"on_error": "return"}`)} {
		if got := of(same); got != one {
			t.Errorf("%+v: %s, want %s", same, got, one)
		}
	}
	for _, other := range []*agent.Contract{said("a  c", `[{"assert":"x y","n":1}]`, `{"on_error":"return"}`),
		said("a b", `[{"assert":"xy","n":1}]`, `{"on_error":"return"}`),
		said("a b", `[{"assert":"x y","n":9007199254740993}]`, `{"on_error":"return"}`),
		said("a b", `[{"assert":"x y","n":1}]`, ``)} {
		if got := of(other); got == one {
			t.Errorf("%+v has the digest of another wording", other)
		}
	}
	for _, nothing := range []*agent.Contract{nil, {}, said(" ", `[]`, `{}`), said("", `null`, `" "`),
		{Deliverable: json.RawMessage(`{"type":"number"}`)}} {
		if got := of(nothing); got != agent.NoWords {
			t.Errorf("%+v: %s, want that nothing is said", nothing, got)
		}
	}
}

// Text that people registered is separate from that of programs, sessions and calls. Only registered text is kept.
func TestWhoseWordsTheyAre(t *testing.T) {
	t.Parallel()
	a, b := said("a", "", ""), said("b", `["c"]`, "")
	person := wordsOf(contract.Layers{Role: a})
	for name, x := range map[string]struct {
		layers   contract.Layers
		byPerson agent.WordingDigest
		own      bool
		text     string
		made     agent.WordingDigest
	}{
		"a person's": {contract.Layers{Role: a}, person.ByPerson, false, "a", person.ByPerson},
		"a program's": {contract.Layers{Role: a, ByProgram: true}, agent.NoWords, false, "a",
			person.ByPerson},
		"of the method": {contract.Layers{Role: b, ByProgram: true, Method: a}, person.ByPerson, false,
			"a", wordsOf(contract.Layers{Role: said("a", `["c"]`, "")}).ByPerson},
		"a session's beside a person's": {contract.Layers{Role: a, Session: said("z", "", "")}, person.ByPerson, true,
			"a", person.ByPerson},
		"a session's, the same": {contract.Layers{Role: a, Session: said("a ", "", "")}, person.ByPerson,
			false, "a", person.ByPerson},
		"a session's alone": {contract.Layers{Session: a}, agent.NoWords, true, "", person.ByPerson},
		"a delegation's beside a person": {contract.Layers{Role: a, Delegated: said("z", "", "")}, person.ByPerson,
			false, "a", person.ByPerson},
	} {
		w := wordsOf(x.layers)
		if w.ByPerson != x.byPerson || w.Own != x.own || w.Made.Purpose != x.text || w.Made.Digest != x.made ||
			w.Made.ByPerson != x.byPerson {
			t.Errorf("%s: %+v", name, w)
		}
	}
}
