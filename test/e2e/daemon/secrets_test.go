package daemon

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// canary is a secret that nothing but its place gives away: letters without a digit.
func letterCanary(place string) string {
	text := strings.ToLower(rand.Text())
	return "cnry" + place + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return 'a' + r - '0'
		}
		return r
	}, text)
}

// An api is a server that repeats what it is asked, in its body and in a header.
type echoAPI struct {
	*httptest.Server
	moved atomic.Bool // the shape of its answers has changed
	asked atomic.Value
}

func newEchoAPI(t *testing.T) *echoAPI {
	a := &echoAPI{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.asked.Store(r.URL.String() + "\n" + strings.Join(r.Header["Authorization"], "") + "\n" +
			strings.Join(r.Header["X-Odd"], "") + "\n" + string(body))
		answer := object{"items": 3, "echo": object{"url": r.URL.String(), "header": r.Header, "body": string(body)}}
		if a.moved.Load() {
			answer = object{"data": object{"items": 3}, "echo": answer["echo"]}
		}
		w.Header().Set("X-Echo", r.URL.RawQuery)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *echoAPI) host() string { return strings.TrimPrefix(a.URL, "http://") }

// everything is what the daemon has stored, logged, sent to the model and shows to readers, by where it is.
func everything(d *rig.Daemon, m *rig.Model, session string) map[string][]byte {
	all := map[string][]byte{}
	for _, path := range []string{"/v1/sessions/" + session, "/v1/sessions/" + session + "/history?limit=200",
		"/v1/calls?limit=200", "/v1/tools?limit=100", "/v1/patterns",
		"/v1/recommendations", "/v1/maintenance/audit", "/metrics", "/v1/maintenance/export"} {
		if got := d.Send(http.MethodGet, path, nil, nil); got.Status == http.StatusOK {
			all["GET "+path] = got.Body
		}
	}
	for _, call := range d.List("/v1/calls") {
		id, _ := call["call_id"].(string)
		for _, path := range []string{"/v1/calls/" + id, "/v1/calls/" + id + "/why", "/v1/calls/" + id + "/events"} {
			if got := d.Send(http.MethodGet, path, nil, nil); got.Status == http.StatusOK {
				all["GET "+path] = got.Body
			}
		}
	}
	for i, r := range m.Requests() {
		all[request(i, r.Role, r.Method)] = rig.MustJSON(r.Body)
	}
	d.Stop(syscall.SIGTERM)
	for path, data := range rig.Files(d.T, d.Dir) {
		all[path] = data
	}
	all["the daemon's log"] = []byte(d.Output.String())
	return all
}

// request is the place of a request to the model.
func request(i int, role, method string) string {
	return fmt.Sprintf("request %d to the model, for %s.%s", i, role, method)
}

// absent wants the secrets to be nowhere, however they are written.
func absent(t *testing.T, all map[string][]byte, secrets map[string]string) {
	t.Helper()
	if len(all) < 20 {
		t.Errorf("only %d places were searched", len(all))
	}
	for name, secret := range secrets {
		known := mask.NewKnown(secret)
		for place, data := range all {
			if masked, found := known.Bytes(data); found {
				i := strings.Index(string(masked), mask.Masked)
				for j := 0; j < min(len(masked), len(data)); j++ {
					if masked[j] != data[j] {
						i = j
						break
					}
				}
				t.Errorf("the secret %s (%s) is in %s:\n...%s...", name, secret, place,
					data[max(0, i-300):min(len(data), i+120)])
			}
		}
	}
}
