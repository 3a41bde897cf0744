package daemon

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// fetches is a program that sends requests: each line is a method, an address or the name of an argument, and a body.
// It returns the last answer's body.
func fetches(lines ...string) string {
	var b strings.Builder
	b.WriteString("\tvar body string\n")
	for _, l := range lines {
		p := append(strings.SplitN(l, " ", 3), "", "")
		address := fmt.Sprintf("%q", p[1])
		if !strings.Contains(p[1], "/") {
			address = fmt.Sprintf("call.Arg(0, %q).(string)", p[1])
		}
		fmt.Fprintf(&b, "\tif r, err := call.FetchWith(recurgent.Request{Method: %q, URL: %s, Body: %q}); err != nil {\n\t\treturn nil, err\n\t} else {\n\t\tbody = r.Body\n\t}\n", p[0], address, p[2])
	}
	return rig.Program(b.String() + "\treturn body, nil")
}

// An upstream notes what it gets, and answers with how much that is.
type upstream struct {
	*httptest.Server

	mu   sync.Mutex
	got  []string      // method, path, body; guarded by mu
	keys []string      // Idempotency-Key; guarded by mu
	auth []string      // Authorization; guarded by mu
	hold chan struct{} // what /hold waits for
	once sync.Once
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{hold: make(chan struct{})}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.got = append(u.got, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		u.keys = append(u.keys, r.Header.Get("Idempotency-Key"))
		u.auth = append(u.auth, r.Header.Get("Authorization"))
		n := len(u.got)
		u.mu.Unlock()
		switch r.URL.Path {
		case "/hold":
			select {
			case <-u.hold:
			case <-r.Context().Done():
			}
		case "/hangup":
			c, _, _ := w.(http.Hijacker).Hijack()
			_ = c.Close()
			return
		case "/to":
			http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
			return
		}
		fmt.Fprintf(w, "answer %d", n)
	}))
	t.Cleanup(u.Close)
	t.Cleanup(u.release)
	return u
}

// release lets /hold answer.
func (u *upstream) release() { u.once.Do(func() { close(u.hold) }) }

func (u *upstream) host() string { return strings.TrimPrefix(u.URL, "http://") }

func (u *upstream) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.got)
}

// effectsOf is the method's manifest, as GET shows it.
func effectsOf(d *rig.Daemon, role, method string) object {
	d.T.Helper()
	return d.Get(rig.MethodPath(role, method) + "/effects")
}

// allow approves a manifest.
func allow(d *rig.Daemon, role, method string, body object) object {
	d.T.Helper()
	return d.Do(http.StatusOK, http.MethodPut, rig.MethodPath(role, method)+"/effects", body).Object(d.T)
}

// deniedFor wants the call to be denied for want of a person's approval, which the request would give.
func deniedFor(d *rig.Daemon, got rig.Reply, request, says string) {
	d.T.Helper()
	d.WantError(got, "denied")
	o := got.Outcome
	if o.Metadata["approve"] != request || !strings.Contains(o.ErrorMessage, says) || o.Authored {
		d.T.Errorf("got %+v, want %q and the request %s", o, says, request)
	}
}
