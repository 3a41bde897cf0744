package mask_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// Texts constructed to be scanned repeatedly cost about as much as ordinary texts of their length. Before the bounds,
// one of these took many minutes.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	backslashes := &strings.Builder{}
	for n := 2800; n > 0; n-- {
		fmt.Fprintf(backslashes, "key=%s'", strings.Repeat(`\`, n))
	}
	deep := "x://h?b=x"
	for n := 1; len(deep) < size; n++ {
		deep += "://%" + strings.Repeat("25", n-1) + "3Fb=x"
	}
	for name, text := range map[string]string{
		"values of names":      fill("key="),
		"with colons":          fill("key:"),
		"objects in quotes":    fill(`"key":{`),
		"lists in quotes":      fill(`"key":[`),
		"masked cookies":       fill("cookie=[maskeda=b "),
		"masked digests":       fill("authorization: digest [masked "),
		"beginnings of tokens": fill("eyJ-"),
		"and an end":           fill("eyJ-") + "." + "abc",
		"quotation marks":      backslashes.String(),
		"addresses":            deep,
		"private keys":         fill("-----BEGIN PRIVATE KEY"),
		"schemes":              fill("Bearer "),
		"names before a word":  fill("password:") + " word",
		"names before blanks":  fill("password:")[size/2:] + strings.Repeat(" ", size/2) + "word",
		"cookies before words": fill("cookie:") + " word",
		"masked lists":         fill(`"password":[masked`),
		"forms of a length":    fill("AKIA-"),
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal([]string{text})
			if err != nil {
				t.Fatal(err)
			}
			if got := rules().Call([]json.RawMessage{raw}, json.RawMessage(`{}`), nil, nil); !json.Valid(got.Args[0]) {
				t.Error("what is left is no JSON")
			}
		})
	}
}

// A long pass ends with its context. It masks whatever it has not scanned and may contain a secret.
func TestRulesEnd(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	long := strings.Repeat("a=b ", 1<<15) + "password=hunter2hunter2"
	if got := rules().Until(ended).Text(long); got != mask.Masked {
		t.Errorf("of a long text: %.80s", got)
	}
	if got := rules().Until(t.Context()).Text(long); got != rules().Text(long) || strings.Contains(got, "hunter2") {
		t.Errorf("within its time: %.80s", got)
	}
	raw := json.RawMessage(`{"first":"` + long + `","then":["plain", "password=hunter2hunter2"],"n":1}`)
	if got, changed := rules().Until(ended).JSON(raw); !changed ||
		string(got) != `{"first":"[masked]","then":["plain", "[masked]"],"n":1}` {
		t.Errorf("of a value: %.200s", got)
	}
	if got := rules().Until(ended).Text("short a=b"); got != "short a=b" {
		t.Errorf("of a short text: %s", got)
	}
}

// A secret that is long, or similar to its surroundings, is found. Text that only resembles it costs little.
func TestHostileSecrets(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("-", 100<<10) + "a"
	k := mask.NewKnown(long)
	if got := k.String("x" + long + "y"); got != "x[masked]y" {
		t.Errorf("got %.80s", got)
	}
	_ = k.String(strings.Repeat(long[1:], 40))
	_ = mask.NewKnown(strings.Repeat("-", 31) + "a").String(strings.Repeat("a", 1<<20))
}

// With too many secrets, every text counts as one, so that none is missed. A value keeps its kind.
func TestManySecrets(t *testing.T) {
	t.Parallel()
	b := &strings.Builder{}
	for i := range 200_000 {
		fmt.Fprintf(b, "password=number%d ", i)
	}
	raw, err := json.Marshal(map[string]string{"text": b.String()})
	if err != nil {
		t.Fatal(err)
	}
	c := rules().Call(nil, raw, nil, nil)
	k := mask.NewKnown(c.Secrets...)
	if strings.Contains(string(c.Kwargs), "number1") {
		t.Error("the input is not masked")
	}
	got, found := k.JSON(json.RawMessage(`{"a":["number199999 is it",7],"b":null}`))
	if want := `{"[masked]":null}`; !found || len(got) > 60 || got[0] != '{' ||
		strings.Contains(string(got), "number") {
		t.Errorf("got %s, want such as %s", got, want)
	}
	if got := k.String("number5"); got != mask.Masked {
		t.Errorf("got %s", got)
	}
	if got := k.String(""); got != "" {
		t.Errorf("got %s", got)
	}
}
