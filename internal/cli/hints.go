package cli

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/lazy"
)

// requestWords matches hints that describe how to change a request.
var requestWords = lazy.Regexp(`\b(GET|POST|PUT|PATCH|DELETE) |/v1/|\.\.\./|\{"verdict"|` +
	`[Hh]eader|If-Match|Content-Type|the path`)

// requests maps the daemon's descriptions of its operations to commands with the same effect. A request in parentheses
// without a matching command is removed.
var requests = []struct {
	said    func() *regexp.Regexp
	command string
}{
	{lazy.Regexp(`GET \.\.\./generations`), "recurgentd tools lineage ROLE METHOD"},
	{lazy.Regexp(`GET /v1/(replicas|usage)\b`), "recurgentd $1"},
	{lazy.Regexp(`GET /v1/maintenance/audit\b`), "recurgentd tools audit"},
	{lazy.Regexp(`POST /v1/maintenance/audit/(\w+)/undo`), "recurgentd tools undo $1"},
	{lazy.Regexp(`POST /v1/maintenance/restore\b`), "recurgentd tools restore"},
	{lazy.Regexp(`POST /v1/recommendations/(\w+)/(apply|dismiss) \{"undo": true\}`),
		"recurgentd recommend --$2 $1 --undo"},
	{lazy.Regexp(`GET /v1/policy\b`), "recurgentd policy get"},
	{lazy.Regexp(`PATCH /v1/policy\b`), "recurgentd policy set"},
	{lazy.Regexp(`PUT /v1/namespaces/`), "recurgentd namespaces create "},
	{lazy.Regexp(`GET /v1/namespaces\b`), "recurgentd namespaces list"},
	{lazy.Regexp(`PUT /v1/connections/\{name\}`), "recurgentd connections set NAME"},
	{lazy.Regexp(`GET /v1/calls/(call_\w+) has its outcome`), "recurgentd why $1 has its outcome"},
	{lazy.Regexp(`GET /v1/calls\b`), "recurgentd tools decisions"},
	{lazy.Regexp(`DELETE /v1/calls/(call_\w+)/verdict`), "recurgentd verdict $1 --drop"},
	{lazy.Regexp(`POST /v1/calls/(call_\w+)/verdict`), "recurgentd right $1, or recurgentd wrong $1"},
	{lazy.Regexp(`DELETE /v1/calls/\{id\}/verdict`), "recurgentd verdict --drop"},
	{lazy.Regexp(`say \{"verdict": "right"\}`), "say so by recurgentd right CALL_ID"},
	{lazy.Regexp(`\{"verdict": "wrong", "expected": 700, "note": "([^"]+)"\}`),
		`recurgentd wrong CALL_ID --expected 700 --note "$1"`},
	{lazy.Regexp(`PUT /v1/tools/[^/ ]+/methods/[^/ ]+/examples`), "recurgentd tools examples put"},
	{lazy.Regexp(`DELETE /v1/[^ ]+, recurgentd`), "recurgentd"},
	{lazy.Regexp(` \((?:GET|POST|PUT|PATCH|DELETE) [^ )]+\)`), ""},
}

// asCommands replaces requests in a text of the daemon by commands.
func asCommands(text string) string {
	if !requestWords().MatchString(text) {
		return text
	}
	for _, r := range requests {
		text = r.said().ReplaceAllString(text, r.command)
	}
	return text
}

// noSuchRoute is the daemon's code for a path that it does not have.
const noSuchRoute = "no_such_route"

// inCommands replaces the hint in a refusal of the daemon by one for a user of this command, because the daemon's own
// hints are about requests.
func inCommands(cmd *cobra.Command, c *client.Client, err error) error {
	var r *client.Refusal
	if !errors.As(err, &r) {
		return err
	}
	foreign := r.Code == "" && (r.Status == http.StatusBadRequest || r.Status == http.StatusMethodNotAllowed)
	switch r.Status {
	case http.StatusUnauthorized:
		r.Hint = "give an access token that the daemon knows in RECURGENT_TOKEN or with --token-file"
		return err
	case http.StatusNotFound:
		if base, whole := strings.CutSuffix(c.URL(), "/v1"); whole {
			r.Hint = "--url or RECURGENT_URL is the daemon's address without /v1: " + base
			return err
		}
		foreign = r.Code == "" || r.Code == noSuchRoute
		r.Hint = cmp.Or(listFor(r.Detail), whatThereIs(cmd), r.Hint)
	case http.StatusForbidden:
		if r.Code == "insufficient_scope" { // the daemon's hint explains members that are not shown
			r.Hint = "the operator of the daemon grants scopes to tokens"
		}
	}
	if foreign {
		r.Hint = "is there a recurgentd at " + c.URL() + "? --url or RECURGENT_URL is its address without a path " +
			"such as /ui, and begins with https:// where it has a certificate"
		return err
	}
	r.Detail = asCommands(r.Detail)
	if r.Hint = asCommands(r.Hint); requestWords().MatchString(r.Hint) {
		r.Hint = ""
	}
	return err
}

// listFor returns a hint at the command that lists what the daemon says is missing, or "".
func listFor(detail string) string {
	for _, x := range []struct{ what, hint string }{
		{"namespace", "recurgentd namespaces list lists what there is"},
		{"file", "recurgentd files list lists what there is"},
		{"proposed contract", "recurgentd inbox --kind proposal lists what there is"},
	} {
		if strings.HasPrefix(detail, "there is no "+x.what+" ") {
			return x.hint
		}
	}
	return ""
}

// whatThereIs returns a hint at the command that lists valid arguments of cmd, or "".
func whatThereIs(cmd *cobra.Command) string {
	for _, x := range []struct{ word, hint string }{
		{"CALL_ID", "recurgentd tools decisions lists the latest calls"},
		{"ROLE", "recurgentd tools list lists the tools, recurgentd tools list ROLE the methods of one"},
		{"SESSION", "recurgentd call without --session makes a session and prints its id"},
	} {
		if strings.Contains(cmd.Use, x.word) && !cmd.Flags().Changed("session") {
			return x.hint
		}
	}
	switch {
	case cmd.Flags().Changed("session"):
		return "recurgentd call without --session makes a session and prints its id"
	case cmd.Name() == "undo":
		return "recurgentd tools audit lists the operations"
	case cmd.HasParent() && (cmd.Parent().Name() == "connections" || cmd.Parent().Name() == "namespaces"):
		return "recurgentd " + cmd.Parent().Name() + " list lists what there is"
	}
	return ""
}
