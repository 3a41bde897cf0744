package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/client"
)

// Every command of the table of hints exists, with its flags, and every line of the table is used by one of these
// texts.
func TestHintsNameCommands(t *testing.T) {
	t.Parallel()
	const id = "06gzqwq081srb0e6zx42fm96t4"
	used := make([]bool, len(requests))
	var texts []string
	for _, text := range []string{"GET .../generations", "GET /v1/replicas", "GET /v1/usage",
		"GET /v1/maintenance/audit",
		"POST /v1/maintenance/audit/aud_" + id + "/undo", "POST /v1/maintenance/restore",
		"POST /v1/recommendations/rec_" + id + `/apply {"undo": true}`,
		"POST /v1/recommendations/rec_" + id + `/dismiss {"undo": true}`, "GET /v1/policy", "PATCH /v1/policy",
		"PUT /v1/namespaces/acme", "GET /v1/namespaces", "PUT /v1/connections/{name}",
		"GET /v1/calls/call_" + id + " has its outcome", "GET /v1/calls", "DELETE /v1/calls/call_" + id + "/verdict",
		"POST /v1/calls/call_" + id + "/verdict", "DELETE /v1/calls/{id}/verdict", `say {"verdict": "right"}`,
		`{"verdict": "wrong", "expected": 700, "note": "70 percent, not 60"}`,
		"PUT /v1/tools/{role}/methods/{method}/examples", "DELETE /v1/files/{id}, recurgentd files rm",
		"Delete sessions (DELETE /v1/sessions/{id})"} {
		for i, r := range requests {
			used[i] = used[i] || r.said().MatchString(text)
		}
		texts = append(texts, asCommands(text))
	}
	for i, is := range used {
		if !is {
			t.Errorf("no text is for %q", requests[i].command)
		}
	}
	root := Command(Shell{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		texts = append(texts, whatThereIs(c))
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	for _, text := range texts {
		for _, line := range strings.Split(text, "recurgentd ")[1:] {
			words := strings.Fields(strings.TrimRight(line, " ,;."))
			c, rest, err := root.Find(words)
			if err != nil || !c.Runnable() {
				t.Errorf("%q: there is no command %q", text, line)
				continue
			}
			for _, word := range rest {
				if name, is := strings.CutPrefix(word, "--"); is && c.Flags().Lookup(name) == nil {
					t.Errorf("%q: %s has no %s", text, c.CommandPath(), word)
				}
			}
		}
	}
}

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
		{"rollback ROLE METHOD", http.StatusUnprocessableEntity, "GET .../generations lists those that are kept",
			"recurgentd tools lineage ROLE METHOD lists those that are kept"},
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
		{"wrong CALL", http.StatusUnprocessableEntity, `say {"verdict": "right"}`, "say so by recurgentd right CALL_ID"},
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

// Hints at lists are about what is missing, whatever the command is about.
func TestHintsAtLists(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{`there is no namespace "x"`: "recurgentd namespaces list",
		"there is no file x": "recurgentd files list", `there is no proposed contract "x"`: "recurgentd inbox",
		`there is no program of "a" "b"`: "recurgentd tools list"} {
		r := &client.Refusal{Status: http.StatusNotFound, Code: "not_found", Detail: detail}
		err := inCommands(&cobra.Command{Use: "call ROLE METHOD"}, client.New("http://127.0.0.1:1", "", nil), r)
		if err == nil || !strings.HasPrefix(r.Hint, want) {
			t.Errorf("%s: %q, want %s", detail, r.Hint, want)
		}
	}
	r := &client.Refusal{Status: http.StatusForbidden, Code: "insufficient_scope", Hint: "missing names the scope"}
	if err := inCommands(&cobra.Command{}, client.New("http://127.0.0.1:1", "", nil), r); err == nil ||
		r.Hint != "the operator of the daemon grants scopes to tokens" {
		t.Errorf("of a scope: %q", r.Hint)
	}
}
