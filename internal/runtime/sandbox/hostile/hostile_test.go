package hostile

import "testing"

func TestPrograms(t *testing.T) {
	all, err := Programs()
	if err != nil {
		t.Fatal(err)
	}
	classes := map[string]int{}
	for _, p := range all {
		classes[p.Class]++
		if len(p.Allow) == 0 {
			t.Errorf("%s may end in no way", p.Name)
		}
	}
	if len(all) < 150 {
		t.Errorf("%d programs, want 150 at least", len(all))
	}
	for _, c := range []string{"cpu", "mem", "fs", "net", "proc", "escape", "output", "panic", "race", "leak",
		"poison"} {
		if classes[c] == 0 {
			t.Errorf("no program of class %s", c)
		}
	}
	t.Log(len(all), classes)
}
