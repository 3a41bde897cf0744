package operator

import "testing"

// The inbox says in plain words why the program that waits was made.
func TestMadeFor(t *testing.T) {
	t.Parallel()
	for trigger, want := range map[string]string{
		"initial_forge":              "is the first program of its method",
		"repair:contract_violation":  `is a repair of the program before it ("contract violation")`,
		"regenerate:purpose_changed": `was written anew ("purpose changed")`,
		"operator:put":               "was put in by a person",
		"operator:fewer\ndigits":     `was put in by a person ("fewer\ndigits")`,
		"other":                      `was made by "other"`,
	} {
		if got := madeFor(trigger); got != want {
			t.Errorf("%s: got %s, want %s", trigger, got, want)
		}
	}
}
