package cli

import (
	"strings"
	"testing"
)

// The first screen's examples work where the daemon wants tokens: they say where a token goes.
func TestFirstScreenNamesTheToken(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Provider = "replay"
	if open := firstScreen(o.URL, o, "recurgentd"); strings.Contains(open, "TOKEN") || !strings.Contains(open, "\n  curl http") {
		t.Errorf("without tokens:\n%s", open)
	}
	o.AuthTokensFile = "tokens"
	for _, want := range []string{"\n  export RECURGENT_TOKEN=... ", `curl -H "Authorization: Bearer $RECURGENT_TOKEN" http`, "\n  recurgentd call calculator add 2 3\n"} {
		if got := firstScreen(o.URL, o, "recurgentd"); !strings.Contains(got, want) {
			t.Errorf("with tokens it lacks %q:\n%s", want, got)
		}
	}
}
