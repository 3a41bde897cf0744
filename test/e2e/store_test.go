package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/cli"
)

// TestCrashDaemon kills the real daemon (SIGKILL) under concurrent load at random moments, again and again: no
// acknowledged call is lost or doubled, seq is gapless, the context is what the acknowledged calls made of it, counters
// equal the history, every file parses. CRASH_ROUNDS says how often, a dozen times when it is not set. H-59, P-12,
// P-37; issue 5.
func TestCrashDaemon(t *testing.T) {
	rounds := 12
	if n, err := strconv.Atoi(os.Getenv("CRASH_ROUNDS")); err == nil {
		rounds = n
	}
	if testing.Short() {
		rounds = 3
	}
	m := newModel(t, script{"counter.inc": {progIncrement}})
	d := newDaemon(t, m)
	sessions := []string{}
	for range 4 {
		sessions = append(sessions, d.session("counter"))
	}
	d.call(sessions[0], "inc")
	var mu sync.Mutex
	acked := map[string][]string{} // guarded by mu
	random := rand.New(rand.NewPCG(5, 5))
	for round := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		seen := make(chan struct{}, 1<<16)
		for _, id := range sessions {
			wg.Go(func() {
				for ctx.Err() == nil {
					r, err := d.try(ctx, http.MethodPost, "/v1/sessions/"+id+"/calls", []byte(`{"method":"inc","args":[]}`), map[string]string{"Content-Type": "application/json"})
					if err != nil || r.Status != http.StatusOK {
						continue
					}
					var got reply
					if json.Unmarshal(r.Body, &got) == nil && got.Outcome.OK {
						mu.Lock()
						acked[id] = append(acked[id], got.CallID)
						mu.Unlock()
						seen <- struct{}{}
					}
				}
			})
		}
		for range 1 + random.IntN(200) { // a random moment, told in calls: rounds are as long on every machine
			select {
			case <-seen:
			case <-time.After(patience):
				t.Fatal("no calls are answered")
			}
		}
		d.kill(syscall.SIGKILL)
		cancel()
		wg.Wait()
		d.start()
		total := 0
		for _, id := range sessions {
			total += d.checkCounter(round, id, acked[id])
		}
		var a struct {
			SuccessCount int `json:"success_count"`
		}
		r := d.do(http.StatusOK, http.MethodGet, "/v1/tools/counter/methods/inc", nil)
		if err := json.Unmarshal(r.Body, &a); err != nil || a.SuccessCount != total {
			t.Fatalf("round %d: success_count %d, %d ok records (%v)", round, a.SuccessCount, total, err)
		}
	}
	if n := m.count("counter", "inc"); n != 1 {
		t.Errorf("the model was asked %d times over %d kills, want once", n, rounds)
	}
	if code := d.kill(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	checkFiles(t, d.state())
	if stdout, stderr, code := d.client("store", "verify"); code != 0 || !strings.Contains(stdout, "4 sessions") {
		t.Errorf("store verify: exit code %d: %s%s", code, stdout, stderr)
	}
}

// checkCounter checks one session after a kill and returns the number of its ok records.
func (d *proc) checkCounter(round int, id string, acked []string) (ok int) {
	d.t.Helper()
	there := map[string]bool{}
	for i, r := range d.history(id) {
		call, _ := r["call_id"].(string)
		if there[call] {
			d.t.Fatalf("round %d: call %s is recorded twice", round, call)
		}
		there[call] = true
		if r["seq"] != float64(i+1) {
			d.t.Fatalf("round %d: seq %v at place %d", round, r["seq"], i+1)
		}
		if summary, _ := r["outcome_summary"].(map[string]any); summary["ok"] == true {
			ok++
		}
	}
	for _, call := range acked {
		if !there[call] {
			d.t.Fatalf("round %d: the acknowledged call %s is lost", round, call)
		}
	}
	value, _ := d.get("/v1/sessions/" + id + "/context")["value"].(float64)
	if int(value) != ok {
		d.t.Fatalf("round %d: the context says %v, %d calls were ok", round, value, ok)
	}
	return ok
}

// checkFiles checks that every file for people parses and that nothing was left aside.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines := []string{string(text)}
		switch filepath.Ext(name) {
		case ".jsonl":
			lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		case ".json":
		default:
			lines = nil
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				return fmt.Errorf("%s does not parse: %.80s", name, line)
			}
		}
		if strings.Contains(name, ".tmp") || strings.Contains(name, ".corrupt-") {
			return fmt.Errorf("%s was left", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Issue 5, 8: a stopped daemon's store moves to another directory and serves on.
func TestStoreExportImport(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}})
	d := newDaemon(t, m)
	s := d.session("calculator")
	d.wantValue(d.call(s, "add", 2, 3), 5, "generated")
	online := filepath.Join(d.dir, "online.tar.gz")
	if stdout, stderr, code := d.client("store", "export", online); code != 0 {
		t.Fatalf("export of a running daemon: exit code %d: %s%s", code, stdout, stderr)
	}
	d.kill(syscall.SIGTERM)
	file := filepath.Join(d.dir, "export.tar.gz")
	if stdout, stderr, code := d.client("store", "export", file); code != 0 {
		t.Fatalf("export: exit code %d: %s%s", code, stdout, stderr)
	}
	if _, stderr, code := d.client("store", "export", file); code != cli.ExitFailed || !strings.Contains(stderr, "exists already") {
		t.Errorf("export over a file: exit code %d: %s", code, stderr)
	}
	if _, stderr, code := d.client("store", "import", file); code != cli.ExitFailed || !strings.Contains(stderr, "not empty") {
		t.Errorf("import over a store: exit code %d: %s", code, stderr)
	}
	if err := os.RemoveAll(d.state()); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := d.client("store", "verify"); code != cli.ExitUsage || !strings.Contains(stderr, "no data directory") {
		t.Errorf("verify of nothing: exit code %d: %s", code, stderr)
	}
	for _, archive := range []string{file, online} { // what was taken online is as whole as the other
		if err := os.RemoveAll(d.state()); err != nil {
			t.Fatal(err)
		}
		if stdout, stderr, code := d.client("store", "import", archive); code != 0 || !strings.Contains(stdout, "1 artifacts") {
			t.Fatalf("import of %s: exit code %d: %s%s", archive, code, stdout, stderr)
		}
	}
	d.start()
	d.wantValue(d.call(s, "add", 40, 2), 42, "persisted")
	if n := len(d.history(s)); n != 2 {
		t.Errorf("got %d records after the move, want 2", n)
	}
	if n := m.count("calculator", "add"); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	if _, stderr, code := d.client("store", "repair"); code != cli.ExitFailed || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "in use") {
		t.Errorf("repair under a running daemon: exit code %d: %s", code, stderr)
	}
	d.kill(syscall.SIGTERM)
	if stdout, stderr, code := d.client("store", "repair"); code != 0 {
		t.Errorf("repair: exit code %d: %s%s", code, stdout, stderr)
	}
}
