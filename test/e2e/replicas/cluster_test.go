//go:build postgres

package replicas

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A decision made at one replica holds at the others with their next request: about recommendations, and what a
// signature is named.
func TestDecisionsElsewhere(t *testing.T) {
	t.Parallel()
	all, _ := countingReplicas(t, 2)
	a, b := all[0], all[1]
	a.Do(http.StatusOK, http.MethodPut, rig.MethodPath("finder", "find"), map[string]any{"code": rig.ProgMoviesWeak})
	s := a.Session("finder", map[string]any{"contract": rig.MovieContract})
	for range 4 { // weak answers, and the question repeated
		a.Call(s, "find", "action")
	}
	advice := "/v1/recommendations/" + b.Recommendations("")[0]["id"].(string) + "/dismiss"
	open := func(want int) {
		t.Helper()
		for _, d := range all {
			if list := d.Recommendations(""); len(list) != want {
				t.Errorf("%d recommendations at %s, want %d", len(list), d.URL, want)
			}
			rig.Until(t, "the open recommendations are counted",
				func() bool { return d.Metric("recurgent_recommendations_open") == float64(want) })
		}
	}
	open(1)
	a.Do(http.StatusOK, http.MethodPost, advice, map[string]any{"reason": "not now"})
	open(0)
	b.Do(http.StatusOK, http.MethodPost, advice, map[string]any{"undo": true})
	open(1)

	const signature = "/v1/signatures/qa"
	for _, d := range all {
		d.Do(http.StatusNotFound, http.MethodGet, signature, nil)
	}
	fields := func(output string) map[string]any {
		return map[string]any{"inputs": []any{map[string]any{"name": "q"}},
			"outputs": []any{map[string]any{"name": output}}}
	}
	a.Do(http.StatusCreated, http.MethodPut, signature, fields("a"))
	b.Do(http.StatusOK, http.MethodPut, signature, fields("b"))
	if got := a.Get(signature); !strings.Contains(fmt.Sprint(got), "name:b") {
		t.Errorf("the signature is %v, want that of the other replica", got)
	}
	a.Do(http.StatusNoContent, http.MethodDelete, signature, nil)
	b.Do(http.StatusNotFound, http.MethodGet, signature, nil)
}

// Calls of a session that are sent to all replicas at once run one after another, at one of them.
func TestOrder(t *testing.T) {
	t.Parallel()
	all, _ := countingReplicas(t, 2)
	id := all[0].Session("counter")
	const n = 30
	var sent sync.WaitGroup
	var mu sync.Mutex
	seen, by := map[string]bool{}, map[string]bool{}
	for i := range n {
		sent.Go(func() {
			r := next(all[i%2], id)
			mu.Lock()
			defer mu.Unlock()
			seen[fmt.Sprint(r.Object(t)["outcome"].(map[string]any)["value"])], by[r.Header.Get(
				"Recurgent-Replica")] = true, true
		})
	}
	sent.Wait()
	if len(seen) != n || len(by) != 1 {
		t.Errorf("%d different values by %d replicas, want %d by one", len(seen), len(by), n)
	}
	for _, d := range all {
		if records := d.History(id); len(records) != n {
			t.Errorf("%d records, want %d", len(records), n)
		}
	}
	if list := all[1].Get("/v1/replicas")["data"].([]any); len(list) != 2 {
		t.Errorf("replicas: %v", list)
	}
	if forwarded := all[0].Metric(`recurgent_cluster_forwarded_total{direction="out"}`) +
		all[1].Metric(`recurgent_cluster_forwarded_total{direction="out"}`); forwarded < 1 {
		t.Error("no request was forwarded")
	}
}

// The sessions of a replica that is stopped for a while move. What it had begun is refused when it goes on, and it
// takes back nothing.
func TestStoppedForAWhile(t *testing.T) {
	t.Parallel()
	all, gate := countingReplicas(t, 2)
	a, b := all[0], all[1]
	id := a.Session("counter")
	want(t, next(a, id), 1)
	under := make(chan rig.Response, 1)
	go func() {
		under <- a.Send("POST", "/v1/sessions/"+id+"/calls", []byte(`{"method":"wait"}`),
			map[string]string{"Content-Type": "application/json"})
	}()
	<-gate.Entered
	freeze(a)
	want(t, next(b, id), 2)
	signal(a, syscall.SIGCONT)
	gate.Open()
	if r := <-under; r.Status != 503 || !strings.Contains(string(r.Body), "session_moved") {
		t.Errorf("the call that was under way: %d %s, want that the session has moved", r.Status, r.Body)
	}
	want(t, next(a, id), 3)
	if records := b.History(id); len(records) != 3 {
		t.Errorf("%d records, want 3", len(records))
	}
}

// The sessions of a replica that is killed move; those of one that is stopped are handed over, and no request fails.
func TestKilledAndStopped(t *testing.T) {
	t.Parallel()
	all, gate := countingReplicas(t, 3)
	a, b, c := all[0], all[1], all[2]
	id := a.Session("counter")
	want(t, next(a, id), 1)
	a.Stop(syscall.SIGKILL)
	want(t, next(b, id), 2)

	under := make(chan rig.Response, 1)
	go func() {
		under <- c.Send("POST", "/v1/sessions/"+id+"/calls", []byte(`{"method":"wait"}`),
			map[string]string{"Content-Type": "application/json"})
	}()
	<-gate.Entered
	signal(b, syscall.SIGTERM)
	gate.Open()
	want(t, <-under, 3)
	if code := b.Wait(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	want(t, next(c, id), 4)
}
