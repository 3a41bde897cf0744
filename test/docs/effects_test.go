package docs

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// localName is the same address by another name of this machine.
func localName(address string) string { return strings.Replace(address, "127.0.0.1", "localhost", 1) }

// shopDaemon is a daemon that may fetch an API under two names, and the address of the API. The first program that
// orders fails once it has ordered.
func shopDaemon(t *testing.T) (*rig.Daemon, string) {
	t.Helper()
	var orders atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Path == "/rate":
			fmt.Fprint(w, "1.08")
		case r.Method == http.MethodGet:
			fmt.Fprint(w, orders.Load())
		case r.Header.Get("Authorization") != "Bearer an-example-key" || r.Header.Get("Idempotency-Key") == "" ||
			len(body) == 0:
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			fmt.Fprintf(w, "order %d", orders.Add(1))
		}
	}))
	t.Cleanup(api.Close)
	host := strings.TrimPrefix(api.URL, "http://")
	order := func(end string) string {
		return rig.Program(`
	r, err := call.FetchWith(recurgent.Request{Method: "POST", URL: "http://`+host+`/orders", Body: fmt.Sprint(call.Args[0])})
	if err != nil {
		return nil, err
	}
	`+end, "fmt")
	}
	m := rig.NewModel(t, rig.Script{
		"shop.rate": {rig.Program(
			"\tr, err := call.Fetch(call.Args[0].(string))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn r.Body, nil")},
		"shop.order": {order("return r.Header[\"Order\"][:1], nil"), order("return r.Body, nil")},
	})
	return rig.Start(t, m, "--fetch-allow", host+","+localName(host)), host
}
