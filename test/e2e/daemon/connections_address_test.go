package daemon

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// hookPath is the secret of a webhook.
const hookPath = "/services/T0cAnAry01/B0cAnAry02/cAnAryOfAWebhook0123456789"

// A webhook whose address is its secret: programs name the connection, the message arrives, and nothing that leaves the
// daemon or stays holds the address, though the host echoes it.
func TestWebhookWhoseAddressIsSecret(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, r.Method+" "+r.URL.Path+" "+string(body))
		mu.Unlock()
		w.Header().Set("X-Echo", r.URL.Path)
		fmt.Fprintf(w, "sent to http://%s%s", r.Host, r.URL.Path)
	}))
	t.Cleanup(hook.Close)
	h := &hay{T: t, needles: map[string][]byte{"path": []byte(hookPath), "token": []byte("cAnAryOfAWebhook0123456789")},
		size: map[string]int{}}
	m := rig.NewModel(t, rig.Script{
		"reporter.report": {rig.Program(`
	r, err := call.FetchWith(recurgent.Request{Method: "POST", URL: "connection:alerts", Body: call.Args[0].(string)})
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": r.Status, "body": r.Body, "echo": r.Header["X-Echo"]}, nil`)},
		"reporter.read": {rig.Program(`
	r, err := call.Fetch("connection:alerts")
	if err != nil {
		return nil, err
	}
	return r.Status, nil`)},
	})
	d := rig.Start(t, m, "--fetch-allow", "127.0.0.1", "--log-level", "debug")
	d.HTTP.Transport = tee{d.HTTP.Transport, h}
	host := strings.TrimPrefix(hook.URL, "http://")
	pipe(t, d, hook.URL+hookPath+"\n", "connections", "set", "alerts", "--type", "url", "--host", host, "--method",
		"POST", "--role", "reporter", "--description", "the team's channel")

	session := d.Session("reporter")
	r := d.Call(session, "report", "the build is green")
	if value, _ := r.Outcome.Value.(map[string]any); value["status"] != 200.0 || value["body"] != "sent to [masked]" ||
		value["echo"] != "[masked]" {
		t.Errorf("report: %+v", r.Outcome)
	}
	if want := "POST " + hookPath + " the build is green"; len(got) != 1 || got[0] != want {
		t.Errorf("the host got %q, want %q", got, want)
	}
	if q := m.Questions()[0]; !strings.Contains(q.User,
		"- alerts: POST of connection:alerts, which is the whole address: the team's channel") {
		t.Errorf("the prompt does not say how to use the connection:\n%s", q.User)
	}
	if r := d.Call(session, "read"); r.Outcome.ErrorType != "denied" ||
		!strings.Contains(r.Outcome.ErrorMessage, "recurgentd connections set alerts --method GET") {
		t.Errorf("read: %+v", r.Outcome)
	}
	if e := d.Get(rig.MethodPath("reporter", "report") +
		"/effects"); !strings.Contains(fmt.Sprint(e), "connection:alerts") || strings.Contains(fmt.Sprint(e), host) {
		t.Errorf("the effects: %v", e)
	}
	d.Do(http.StatusUnprocessableEntity, http.MethodPut, "/v1/connections/alerts",
		map[string]any{"hosts": []string{host}, "methods": []string{"POST"}, "roles": []string{"reporter"},
			"auth": map[string]any{"type": "url", "secret": "https://elsewhere.example.org" + hookPath}})
	for _, path := range []string{"/metrics", "/v1/connections", "/v1/connections/alerts", "/v1/calls?limit=1000",
		"/v1/calls/" + r.CallID, "/v1/sessions/" + session + "/history?limit=1000", "/v1/maintenance/audit?limit=1000",
		rig.MethodPath("reporter", "report"), rig.MethodPath("reporter", "report") + "/fixtures",
		"/v1/maintenance/export"} {
		d.Do(http.StatusOK, http.MethodGet, path, nil)
	}
	d.Stop(syscall.SIGTERM)
	for name, data := range d.Everything() {
		h.search("data directory "+name, data)
	}
	for _, q := range m.Requests() {
		h.search("prompt", rig.MustJSON(q.Body))
	}
	h.search("log", []byte(d.Output.String()))
}
