package interp

import (
	"errors"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
)

// A program that asks for types beyond the limits is refused in words that name the limit, and the engine is not at fault. At the limit it runs.
func TestLimitsOfTypes(t *testing.T) {
	params := func(n int) string { return strings.TrimSuffix(strings.Repeat("int, ", n), ", ") }
	tests := []struct {
		name, decls, body, want string // want is "" where the program runs
	}{
		{"parameters", "type F func(" + params(127) + ")", "return F(nil) == nil, nil", ""},
		{"too many parameters", "type F func(" + params(128) + ")", "var x any = F(nil)\nreturn x == nil, nil", "more than 127 parameters and results"},
		{"channel", "type e [65535]byte", "var x any = make(chan e)\nreturn x != nil, nil", ""},
		{"channel of large elements", "type e [65536]byte", "var x any = make(chan e)\nreturn x != nil, nil", "larger than 64 KiB"},
		{"an interface that leads back to itself", "type I interface { M() interface { I } }", "var x interface { I }\nvar y any = &x\nreturn y, nil", "contains itself"},
		{"large array", "", "var x any = new([1 << 28]int)\nreturn x == nil, nil", "larger than 1 GiB"},
	}
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, r := g.Check("package tool\n" + test.decls + "\nfunc Run(call *recurgent.Call) (any, error) {\n" + test.body + "\n}\n")
			if r != nil {
				t.Fatalf("refused by the gate: %s", r.Message)
			}
			c, err := Compile(p)
			if err == nil {
				defer c.Close()
			}
			var failed *Failure
			switch {
			case errors.As(err, &failed):
				t.Errorf("the engine failed: %v", err)
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			case test.want == "":
				if _, err, p := c.Run(newCall(t)); err != nil || p != nil {
					t.Errorf("got %v %+v", err, p)
				}
			}
		})
	}
}
