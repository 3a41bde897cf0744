package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/client"
)

// Hints of the daemon are rewritten for a user of the command line.
func TestHints(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		use    string
		status int
		hint   string
		want   string // "" means none
	}{
		{"tools list", http.StatusUnauthorized,
			"Send the header Authorization: Bearer TOKEN with a token that the daemon knows.", "RECURGENT_TOKEN"},
		{"rollback ROLE METHOD", http.StatusUnprocessableEntity, "GET .../generations lists the kept ones",
			"recurgentd tools lineage ROLE METHOD lists the kept ones"},
		{"set NAME", http.StatusConflict, "leave If-Match out to make it", ""},
		{"put FILE", http.StatusUnsupportedMediaType, "send the header Content-Type: application/json", ""},
		{"put FILE", http.StatusUnprocessableEntity, "a JSON Schema", "a JSON Schema"},
		{"set NAME", http.StatusUnprocessableEntity, "GET /v1/policy lists the names and values in force",
			"recurgentd policy get lists the names"},
		{"call ROLE METHOD", http.StatusInsufficientStorage,
			"Delete files (DELETE /v1/files/{id}, recurgentd files rm), or let them expire",
			"Delete files (recurgentd files rm), or let"},
		{"call ROLE METHOD", http.StatusInsufficientStorage, "Delete sessions (DELETE /v1/sessions/{id}), or wait",
			"Delete sessions, or wait"},
		{"wrong CALL", http.StatusInsufficientStorage,
			"Delete examples (PUT /v1/tools/{role}/methods/{method}/examples) or verdicts (DELETE /v1/calls/{id}/verdict).", "examples (recurgentd tools examples put) or verdicts (recurgentd verdict --drop)"},
		{"undo ID", http.StatusConflict, "DELETE /v1/calls/call_06gzqwq081srb0e6zx42fm96t4/verdict",
			"recurgentd verdict call_06gzqwq081srb0e6zx42fm96t4 --drop"},
	} {
		r := &client.Refusal{Status: x.status, Hint: x.hint}
		err := inCommands(&cobra.Command{Use: x.use}, client.New("http://127.0.0.1:1", "", nil), r)
		if err == nil || x.want == "" && r.Hint != "" || !strings.Contains(r.Hint, x.want) {
			t.Errorf("%q: %q, want %q", x.hint, r.Hint, x.want)
		}
	}
}
