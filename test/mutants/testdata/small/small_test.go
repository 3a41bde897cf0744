package small

import "testing"

func TestSeven(t *testing.T) {
	if Seven() != 7 {
		t.Error("it is not 7")
	}
}

func TestSmall(t *testing.T) {
	for name, n := range map[string]int{"three": 3, "four/five": 4} {
		t.Run(name, func(t *testing.T) {
			if !Small(n) {
				t.Error("it is not small")
			}
		})
	}
}
