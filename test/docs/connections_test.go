package docs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// exampleAPI is the address of the API with a key in the documents.
const exampleAPI = "127.0.0.1:19000"

// connectedDaemon is a daemon that may fetch an API with a key, and the address of the API.
func connectedDaemon(t *testing.T) (*rig.Daemon, string) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer an-example-key" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "sunny in %s", r.FormValue("city"))
	}))
	t.Cleanup(api.Close)
	host := strings.TrimPrefix(api.URL, "http://")
	m := rig.NewModel(t, rig.Script{"forecaster.tomorrow": {rig.Program(`
	r, err := call.Fetch("http://` + host + `/forecast?city=" + call.Args[0].(string))
	if err != nil {
		return nil, err
	}
	return r.Body, nil`)}})
	secrets := t.TempDir()
	rig.WriteAt(t, filepath.Join(secrets, "books.txt"), "another-example-key\n")
	return rig.Start(t, m, "--fetch-allow", host, "--secrets-dir", secrets), host
}
