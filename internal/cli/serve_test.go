package cli

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/app"
)

// If the daemon requires tokens, the examples of the first screen show where to put one.
func TestFirstScreenNamesTheToken(t *testing.T) {
	t.Parallel()
	o := defaultOptions()
	o.Provider = "replay"
	if open := firstScreen(o.URL, o, "recurgentd"); strings.Contains(open, "TOKEN") ||
		!strings.Contains(open, "\n  curl http") {
		t.Errorf("without tokens:\n%s", open)
	}
	o.AuthTokensFile = "tokens"
	for _, want := range []string{"\n  export RECURGENT_TOKEN=... ",
		`curl -H "Authorization: Bearer $RECURGENT_TOKEN" http`, "\n  recurgentd call calculator add 2 3\n"} {
		if got := firstScreen(o.URL, o, "recurgentd"); !strings.Contains(got, want) {
			t.Errorf("with tokens it lacks %q:\n%s", want, got)
		}
	}
}

// The first screen lists every method of the demo recording, on lines that fit a terminal.
func TestFirstScreenListsTheDemo(t *testing.T) {
	t.Parallel()
	o := defaultOptions()
	o.Provider = "replay"
	screen := firstScreen(o.URL, o, "recurgentd")
	for _, r := range app.Demo() {
		if want := r.Role + "." + strings.Join(r.Methods, ", "); !strings.Contains(screen, want) {
			t.Errorf("it lacks %s:\n%s", want, screen)
		}
	}
	for line := range strings.Lines(screen) {
		if len([]rune(line)) > 110 {
			t.Errorf("a line has more than 110 characters: %s", line)
		}
	}
	if o.Recording = "mine.jsonl"; strings.Contains(firstScreen(o.URL, o, "recurgentd"), "text_tools") {
		t.Error("methods of the demo are named for another recording")
	}
}
