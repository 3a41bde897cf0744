package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Without a database there is no finding. An unreachable one is a failure that names its host but no password.
func TestDoctorDatabase(t *testing.T) {
	t.Parallel()
	none := Shell{Env: func(string) (string, bool) { return "", false }}
	flags := pflag.NewFlagSet("doctor", pflag.ContinueOnError)
	if f, found := checkDatabase(t.Context(), none, flags); found {
		t.Errorf("without a database: got %+v", f)
	}
	address := map[string]string{"RECURGENT_STORE": "postgres://u:s3cret@127.0.0.1:1/name"}
	away := Shell{Env: func(name string) (string, bool) { v, ok := address[name]; return v, ok }}
	f, found := checkDatabase(t.Context(), away, flags)
	if !found || f.Result != checkFail || !strings.Contains(f.Detail, "postgres://127.0.0.1:1/name") ||
		strings.Contains(f.Detail+f.Fix, "s3cret") {
		t.Errorf("of no server: got %+v, %v", f, found)
	}
}
