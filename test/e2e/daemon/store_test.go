package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/cli"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// TestCrashDaemon kills the real daemon (SIGKILL) under concurrent load at random moments, again and again: no
// acknowledged call is lost or doubled, seq is gapless, the context is what the acknowledged calls made of it, counters
// equal the history, every file parses. CRASH_ROUNDS says how often, a dozen times when it is not set.
func TestCrashDaemon(t *testing.T) {
	if testing.Short() {
		t.Skip("long: kills real processes at random moments")
	}
	t.Parallel()
	rounds := rig.Number(t, "CRASH_ROUNDS", 12)
	if testing.Short() {
		rounds = 3
	}
	m := rig.NewModel(t, rig.Script{"counter.inc": {rig.ProgIncrement}})
	d := rig.Start(t, m)
	sessions := []string{}
	for range 4 {
		sessions = append(sessions, d.Session("counter"))
	}
	d.Call(sessions[0], "inc")
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
					r, err := d.Try(ctx, http.MethodPost, "/v1/sessions/"+id+"/calls",
						[]byte(`{"method":"inc","args":[]}`), map[string]string{"Content-Type": "application/json"})
					if err != nil || r.Status != http.StatusOK {
						continue
					}
					var got rig.Reply
					if json.Unmarshal(r.Body, &got) == nil && got.Outcome.OK {
						mu.Lock()
						acked[id] = append(acked[id], got.CallID)
						mu.Unlock()
						seen <- struct{}{}
					}
				}
			})
		}
		for range 1 + random.IntN(200) { // a random moment, counted in calls: rounds are as long on every machine
			select {
			case <-seen:
			case <-time.After(rig.Patience):
				t.Fatal("no calls are answered")
			}
		}
		d.Stop(syscall.SIGKILL)
		cancel()
		wg.Wait()
		d.Start()
		total := 0
		for _, id := range sessions {
			total += checkCounter(d, round, id, acked[id])
		}
		var a struct {
			SuccessCount int `json:"success_count"`
		}
		r := d.Do(http.StatusOK, http.MethodGet, "/v1/tools/counter/methods/inc", nil)
		if err := json.Unmarshal(r.Body, &a); err != nil || a.SuccessCount != total {
			t.Fatalf("round %d: success_count %d, %d ok records (%v)", round, a.SuccessCount, total, err)
		}
	}
	if n := m.Count("counter", "inc"); n != 1 {
		t.Errorf("the model was asked %d times over %d kills, want once", n, rounds)
	}
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	checkFiles(t, d.State())
	if stdout, stderr, code := d.Client("store", "verify"); code != 0 || !strings.Contains(stdout, "4 sessions") {
		t.Errorf("store verify: exit code %d: %s%s", code, stdout, stderr)
	}
}

// checkCounter checks one session after a kill and returns the number of its ok records.
func checkCounter(d *rig.Daemon, round int, id string, acked []string) (ok int) {
	d.T.Helper()
	there := map[string]bool{}
	for i, r := range d.History(id) {
		call, _ := r["call_id"].(string)
		if there[call] {
			d.T.Fatalf("round %d: call %s is recorded twice", round, call)
		}
		there[call] = true
		if r["seq"] != float64(i+1) {
			d.T.Fatalf("round %d: seq %v at place %d", round, r["seq"], i+1)
		}
		if summary, _ := r["outcome_summary"].(map[string]any); summary["ok"] == true {
			ok++
		}
	}
	for _, call := range acked {
		if !there[call] {
			d.T.Fatalf("round %d: the acknowledged call %s is lost", round, call)
		}
	}
	value, _ := d.Get("/v1/sessions/" + id + "/context")["value"].(float64)
	if int(value) != ok {
		d.T.Fatalf("round %d: the context says %v, %d calls were ok", round, value, ok)
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

// A stopped daemon's store moves to another directory and serves on.
func TestStoreExportImport(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	d.WantValue(d.Call(s, "add", 2, 3), 5, "generated")
	online := filepath.Join(d.Dir, "online.tar.gz")
	if stdout, stderr, code := d.Client("store", "export", online); code != 0 {
		t.Fatalf("export of a running daemon: exit code %d: %s%s", code, stdout, stderr)
	}
	d.Stop(syscall.SIGTERM)
	file := filepath.Join(d.Dir, "export.tar.gz")
	if stdout, stderr, code := d.Client("store", "export", file); code != 0 {
		t.Fatalf("export: exit code %d: %s%s", code, stdout, stderr)
	}
	if _, stderr, code := d.Client("store", "export", file); code != cli.ExitFailed ||
		!strings.Contains(stderr, "exists already") {
		t.Errorf("export over a file: exit code %d: %s", code, stderr)
	}
	if _, stderr, code := d.Client("store", "import", file); code != cli.ExitFailed ||
		!strings.Contains(stderr, "not empty") {
		t.Errorf("import over a store: exit code %d: %s", code, stderr)
	}
	if err := os.RemoveAll(d.State()); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := d.Client("store", "verify"); code != cli.ExitUsage ||
		!strings.Contains(stderr, "no data directory") {
		t.Errorf("verify of nothing: exit code %d: %s", code, stderr)
	}
	for _, archive := range []string{file, online} { // what was taken online is as whole as the other
		if err := os.RemoveAll(d.State()); err != nil {
			t.Fatal(err)
		}
		if stdout, stderr, code := d.Client("store", "import",
			archive); code != 0 || !strings.Contains(stdout, "1 artifacts") {
			t.Fatalf("import of %s: exit code %d: %s%s", archive, code, stdout, stderr)
		}
	}
	d.Start()
	d.WantValue(d.Call(s, "add", 40, 2), 42, "persisted")
	if n := len(d.History(s)); n != 2 {
		t.Errorf("got %d records after the move, want 2", n)
	}
	if n := m.Count("calculator", "add"); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	if _, stderr, code := d.Client("store", "repair"); code != cli.ExitFailed || strings.Count(stderr, "\n") != 1 ||
		!strings.Contains(stderr, "in use") {
		t.Errorf("repair under a running daemon: exit code %d: %s", code, stderr)
	}
	d.Stop(syscall.SIGTERM)
	if stdout, stderr, code := d.Client("store", "repair"); code != 0 {
		t.Errorf("repair: exit code %d: %s%s", code, stdout, stderr)
	}
}
