package daemon

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A data directory of a version without namespaces opens as default: its tools, sessions and calls are there, for
// tokens of that namespace and without tokens, and no other namespace shows any of it.
func TestEarlierDirectoriesOpenAsDefault(t *testing.T) {
	t.Parallel()
	rig.OnDisk(t, "no earlier version kept one")
	for _, name := range []string{"v1-stopped", "v1-killed"} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(rig.Root(), "internal/store/disk/testdata/directories",
			name))); err != nil {
			t.Fatal(err)
		}
		sessions, err := os.ReadDir(filepath.Join(dir, "sessions"))
		if err != nil || len(sessions) == 0 {
			t.Fatalf("%s has no sessions: %v", name, err)
		}
		m := rig.NewModel(t, nil)
		held := map[string]int{}
		check := func(root *rig.Daemon) {
			t.Helper()
			if all := root.List("/v1/namespaces"); len(all) != 1 || all[0]["name"] != "default" {
				t.Errorf("%s: the namespaces are %v", name, all)
			}
			for _, list := range []string{"/v1/sessions", "/v1/tools", "/v1/calls", "/v1/maintenance/audit",
				"/v1/recommendations"} {
				got := root.List(list)
				if n, again := held[list]; again && n != len(got) {
					t.Errorf("%s: %d %s, and %d before", name, len(got), list, n)
				}
				held[list] = len(got)
			}
			for _, e := range root.List("/v1/tools") {
				root.Get("/v1/tools/" + e["role"].(string))
			}
		}
		d := guarded(t, m, "--data-dir", dir)
		check(person(d, tokenRoot, ""))
		if held["/v1/sessions"] == 0 || held["/v1/tools"] == 0 || held["/v1/calls"] == 0 {
			t.Errorf("%s holds %v", name, held)
		}
		a := person(d, tokenA, "")
		for _, list := range []string{"/v1/sessions", "/v1/tools", "/v1/calls", "/v1/maintenance/audit",
			"/v1/recommendations"} {
			if got := a.List(list); len(got) != 0 {
				t.Errorf("%s: another namespace has %s: %v", name, list, got)
			}
		}
		for _, e := range sessions {
			if r := a.Send(http.MethodGet, "/v1/sessions/"+e.Name(), nil, nil); r.Status != http.StatusNotFound {
				t.Errorf("%s: %s shows elsewhere: %d", name, e.Name(), r.Status)
			}
		}
		d.Stop(syscall.SIGTERM)
		check(rig.Start(t, m, "--data-dir", dir))
	}
}
