package gate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Fix leaves programs whose text may mean what it says.
func TestFixLeavesMeaning(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for name, source := range map[string]string{
		"a typed failure passed on": program("fmt", "func look(k string) (any, error) { if k == \"\" { return nil, recurgent.Fail(\"not_found\", k) }; return k, nil }",
			`v, err := look(call.Method); if err != nil { return nil, fmt.Errorf("invalid key: %w", err) }; return v, nil`),
		"a check of its own sum": program("errors", "",
			`sum := 0; for i := range 5 { sum += i * 10 }; if sum != 100 { return nil, errors.New("the percentages must sum to 100") }; return sum, nil`),
		"a check of its own number": program("errors", "",
			`n := 3 - len(call.Args); if n < 0 { return nil, errors.New("square root must be real") }; return n, nil`),
		"the number of a weekday": program("time", "", `t := time.Unix(0, 0).UTC(); return map[string]any{"weekday": t.Weekday()}, nil`),
		"a month as the value":    program("time", "", `return time.Unix(0, 0).UTC().Month(), nil`),
		"nanoseconds":             program("time", "", `d := time.Duration(len(call.Args)) * time.Second; return d, nil`),
		"a layout of the caller": program("time", "",
			`l, ok := call.Arg(0, "layout").(string); if !ok { return nil, recurgent.Fail("invalid_input", "layout") }; _, err := time.Parse(l, "2006-01-02"); return err == nil, nil`),
	} {
		if fixed := g.Fix(source, report.Terms{}); fixed.Text != source || len(fixed.Faults) > 0 {
			t.Errorf("%s: changed: %v, refused: %v\n%s", name, fixed.Fixes, fixed.Faults, fixed.Text)
		}
	}
	// A loop over characters keeps them, and is refused with both readings.
	fixed := g.Fix(program("", "", `out := ""; for i := 0; i < 128; i++ { out += string(i) }; return out, nil`), report.Terms{})
	if !strings.Contains(fixed.Text, "string(i)") || !strings.Contains(fmt.Sprint(fixed.Faults), "string(rune(n)) the character") {
		t.Errorf("%v in\n%s", fixed.Faults, fixed.Text)
	}
}

// A correction that a text needs many times does not use up the time of the checks after it.
func TestFixEndsForManyFaults(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"functions": "return []any{" + strings.Repeat("f,", 30000) + "}, nil",
		"counts":    "n := len(call.Args)\nreturn []string{" + strings.Repeat("string(n),", 6000) + "}, nil",
	} {
		g := newGate(t)
		g.Fix(program("", "func f() int { return 1 }", body), report.Terms{})
		if _, r := g.Check(program("", "", `return 1, nil`)); r != nil {
			t.Errorf("%s: %v", name, r)
		}
	}
}
