package daemon

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// unpacked is the content of an archive, its files one after another.
func unpacked(t *testing.T, archive []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An admin exports one namespace of a daemon at work, by its name. The archive has everything of it and nothing of
// another. Added to the store of another daemon, which has namespaces of its own, it goes on there as it was, without
// the model; a store that has one of that name refuses it.
func TestNamespaceMoves(t *testing.T) {
	t.Parallel()
	d, a, b, m, _ := twoTenants(t)
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.tar.gz")
	command := func(token string, args ...string) (said string, code int) {
		out, errs, code := rig.Run(t, append(rig.Environment(dir), "RECURGENT_TOKEN="+token), args...)
		return out + errs, code
	}
	if said, code := command(tokenA, "store", "export", "--url", d.URL, "--namespace", "a",
		archive); code == 0 || !strings.Contains(said, "admin") {
		t.Errorf("exported without the scope admin: %d %s", code, said)
	}
	if said, code := command(tokenRoot, "store", "export", "--url", d.URL, "--namespace", "nobody",
		archive); code == 0 {
		t.Errorf("exported no namespace: %s", said)
	}
	if said, code := command(tokenRoot, "store", "export", "--url", d.URL, "--namespace", "a", archive); code != 0 {
		t.Fatalf("store export: %d %s", code, said)
	}
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	content := unpacked(t, data)
	for _, not := range []string{b.canary, `"ns":"b"`, "ns/b/", "secret-of-a", "secret-of-b"} {
		if bytes.Contains(content, []byte(not)) {
			t.Errorf("the archive of a holds %s", not)
		}
	}
	for _, id := range append(append([]string{}, b.ids["id"]...), b.ids["call_id"]...) {
		if bytes.Contains(content, []byte(id)) {
			t.Errorf("the archive of a holds %s of b", id)
		}
	}
	if n := bytes.Count(content, []byte(a.canary)); n < 10 {
		t.Errorf("the archive of a has its canary %d times", n)
	}
	held := a.holdings()

	other := guarded(t, m)
	own := person(other, tokenB, "")
	in := own.Session("usher")
	own.Do(http.StatusOK, http.MethodPut, rig.MethodPath("usher", "greet"), map[string]any{"code": greeter("usher")})
	own.WantValue(own.Call(in, "greet", "you"), "hello from usher to you", "persisted")
	other.Stop(syscall.SIGTERM)
	key, err := os.ReadFile(filepath.Join(d.State(), store.SecretsKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	rig.WriteAt(t, filepath.Join(other.State(), store.SecretsKeyFile), string(key))
	offline := func(args ...string) (said string, code int) {
		out, errs, code := other.Client(append([]string{"store"}, args...)...)
		return out + errs, code
	}
	if said, code := offline("import", archive, "--namespace", "b"); code == 0 {
		t.Errorf("imported over a namespace, and one that the archive lacks: %s", said)
	}
	if said, code := offline("import", archive, "--namespace",
		"a"); code != 0 || !strings.Contains(said, "audit trail of a") {
		t.Fatalf("store import: %d %s", code, said)
	}
	if said, code := offline("import", archive, "--namespace", "a"); code == 0 {
		t.Errorf("imported twice: %s", said)
	}
	other.Start()
	moved := &tenant{Daemon: person(other, tokenA, ""), name: "a", canary: a.canary, ids: a.ids}
	if got := moved.holdings(); got != held {
		t.Errorf("it had\n%s\nand has\n%s", held, got)
	}
	asked := len(m.Questions())
	moved.WantValue(moved.Call(a.ids["id"][0], "greet", "again"), "hello from a to again", "persisted")
	own = person(other, tokenB, "")
	own.WantValue(own.Call(in, "greet", "again"), "hello from usher to again", "persisted")
	if r := own.Send(http.MethodGet, "/v1/sessions/"+a.ids["id"][0], nil, nil); r.Status != http.StatusNotFound {
		t.Errorf("another namespace is shown it: %d %s", r.Status, r.Body)
	}
	if n := len(m.Questions()); n != asked {
		t.Errorf("the model was asked %d times more", n-asked)
	}
	other.Restart()
	moved.URL = other.URL
	moved.WantValue(moved.Call(a.ids["id"][0], "greet", "later"), "hello from a to later", "persisted")
	other.Stop(syscall.SIGTERM)
	if said, code := offline("verify"); code != 0 {
		t.Errorf("store verify: %d %s", code, said)
	}
}
