// Package overview holds the lists that people decide by to their promises, over HTTP: tools in order, what waits, what another policy would do.
package overview

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

type object = map[string]any

// as puts a token into each request.
type as struct {
	http.RoundTripper
	token string
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	return a.RoundTripper.RoundTrip(r)
}

// person is the daemon as the owner of the token sees it.
func person(d *rig.Daemon, token string) *rig.Daemon {
	mine := *d
	client := *d.HTTP
	client.Transport = as{d.HTTP.Transport, token}
	mine.HTTP = &client
	return &mine
}
