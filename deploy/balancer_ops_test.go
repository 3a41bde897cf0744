//go:build ops

package deploy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
)

// The compose file's nginx sends all requests of a session to one server, spreads sessions, and leaves them where they
// are when another server goes. What they say while the database is away comes to the client, and takes none of them
// out. What docs/scale-out.md shows of it is in its file.
func TestOpsBalancer(t *testing.T) {
	data, err := os.ReadFile("compose/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	config, address := string(data), apptest.Address(t)
	servers := map[string]*httptest.Server{}
	for i := range 3 {
		name := fmt.Sprintf("replica-%d:8420", i+1)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/away") {
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, name)
		}))
		_ = s.Listener.Close() // of an address that another process may be given once this server is gone
		if s.Listener, err = net.Listen("tcp", apptest.Address(t)); err != nil {
			t.Fatal(err)
		}
		s.Start()
		defer s.Close()
		servers[name] = s
		config = strings.Replace(config, "server "+name, "server "+s.Listener.Addr().String(), 1)
	}
	dir := t.TempDir()
	config = strings.NewReplacer("listen 8421", "listen "+address, "/tmp/", dir+"/", "worker_processes auto",
		"daemon off;\nuser root;\nworker_processes 1").Replace(config)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "/usr/sbin/nginx", "-t", "-e", "stderr", "-c", file)
	waitReady(t, "http://"+address, start(t, dir, "/usr/sbin/nginx", "-e", "stderr", "-c", file))
	get := func(session, rest string) string {
		t.Helper()
		resp, err := http.Get("http://" + address + "/v1/sessions/" + session + rest)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	owner, share := map[string]string{}, map[string]int{}
	for i := range 300 {
		id := fmt.Sprintf("sess_%d", i)
		owner[id] = get(id, "")
		share[owner[id]]++
		if again := get(id, "/calls?wait=1"); again != owner[id] {
			t.Errorf("%s came to %s and to %s", id, owner[id], again)
		}
	}
	if len(share) != 3 || share["replica-1:8420"] < 50 || share["replica-2:8420"] < 50 || share["replica-3:8420"] < 50 {
		t.Errorf("300 sessions are spread as %v", share)
	}
	for id := range owner {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r, err := http.NewRequest(method, "http://"+address+"/v1/sessions/"+id+"/away", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "2" {
				t.Fatalf("%s while all are away: %s, Retry-After %q", method, resp.Status,
					resp.Header.Get("Retry-After"))
			}
		}
	}
	for id, was := range owner {
		if now := get(id, ""); now != was {
			t.Errorf("%s went from %s to %s after all were away", id, was, now)
		}
	}
	servers["replica-2:8420"].Close()
	for id, was := range owner {
		if now := get(id, ""); was != "replica-2:8420" && now != was || now == "replica-2:8420" {
			t.Errorf("%s went from %s to %s when replica-2 was gone", id, was, now)
		}
	}
	doc, err := os.ReadFile("../docs/scale-out.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(doc), "```nginx\n")
	shown, _, found := strings.Cut(shown, "```")
	for line := range strings.Lines(shown) {
		if line = strings.TrimSuffix(strings.TrimSpace(line), ";"); !found || !strings.Contains(string(data), line) {
			t.Errorf("docs/scale-out.md shows %q, which is not in the file", line)
		}
	}
}
