package cli

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/client"
)

// requestWords occur in hints that say how to change a request.
var requestWords = regexp.MustCompile(`\b(GET|POST|PUT|PATCH|DELETE) |/v1/|\.\.\./|[Hh]eader|If-Match|Content-Type|the path`)

// asCommands puts commands in the place of requests.
var asCommands = strings.NewReplacer(
	"GET .../generations lists", "recurgentd tools lineage ROLE METHOD lists",
	"GET /v1/replicas lists", "recurgentd replicas lists",
	"GET /v1/maintenance/audit shows", "recurgentd tools audit shows",
	"POST /v1/maintenance/restore", "recurgentd tools restore",
	"or PATCH /v1/policy", "or recurgentd policy set",
	"PUT /v1/namespaces/", "recurgentd namespaces create ",
)

// inCommands gives a refusal of the daemon the hint that the person at this command can follow: the daemon's own speak of requests.
func inCommands(cmd *cobra.Command, c *client.Client, err error) error {
	var r *client.Refusal
	if !errors.As(err, &r) {
		return err
	}
	switch r.Status {
	case http.StatusUnauthorized:
		r.Hint = "give an access token that the daemon knows in RECURGENT_TOKEN or with --token-file"
		return err
	case http.StatusNotFound:
		if base, whole := strings.CutSuffix(c.URL(), "/v1"); whole {
			r.Hint = "--url or RECURGENT_URL is the daemon's address without /v1: " + base
			return err
		}
		r.Hint = cmp.Or(whatThereIs(cmd), r.Hint)
	}
	if r.Hint = asCommands.Replace(r.Hint); requestWords.MatchString(r.Hint) {
		r.Hint = ""
	}
	return err
}

// whatThereIs names the command that lists what the arguments of a command name, or "".
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
	case cmd.HasParent() && (cmd.Parent().Name() == "files" || cmd.Parent().Name() == "connections" || cmd.Parent().Name() == "namespaces"):
		return "recurgentd " + cmd.Parent().Name() + " list lists what there is"
	}
	return ""
}
