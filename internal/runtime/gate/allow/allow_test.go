package allow

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Every package of the standard library is in one of the lists. A later release of Go that adds one needs a decision:
// whether it reaches anything beyond the process, and what programs should use in its place.
func TestEveryPackageIsDecided(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "std").Output()
	if err != nil {
		t.Fatal(err)
	}
	public := strings.Fields(string(out))
	public = slices.DeleteFunc(public, func(path string) bool {
		parts := strings.Split(path, "/")
		return slices.Contains(parts, "internal") || slices.Contains(parts, "vendor")
	})
	for _, path := range public {
		_, admitted := Find(path)
		refused := slices.ContainsFunc(Refused(), func(n Name) bool { return n.Name == path })
		if admitted == refused {
			t.Errorf("%s: admitted %t, refused %t: decide it in packages.go or refused.go", path, admitted, refused)
		}
	}
	for _, p := range Packages() {
		if TruePath(p.Path) == p.Path && !slices.Contains(public, p.Path) {
			t.Errorf("%s is not in the standard library", p.Path)
		}
	}
	if len(public) < 150 {
		t.Errorf("go list std has %d packages", len(public))
	}
}
