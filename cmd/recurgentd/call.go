package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func callCommand(sh shell) *cobra.Command {
	var kwargs []string
	var session string
	var whole bool
	c := &cobra.Command{
		Use:   "call ROLE METHOD [ARG...]",
		Short: "Make one call and print its value",
		Long: `Make one call and print its value on stdout. Arguments and keyword arguments are JSON where they
parse as JSON, else text. Without --session the call gets a session of its own, whose id is told
on stderr.

Exit status: 0 for a value, 1 for an error outcome, 2 for a wrong command line, 3 when no daemon
answers or it refuses the request.`,
		Example: `  recurgentd call calculator add 2 3
  recurgentd call calculator increment --kwargs amount=5 --session SESSION
  recurgentd call text_tools slugify "Crème Brûlée" --json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := loadOptions(clientScope, cmd.Flags(), sh.env)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			body := callBody{Role: args[0], Method: args[1]}
			for _, a := range args[2:] {
				body.Args = append(body.Args, jsonOrText(a))
			}
			if body.Kwargs, err = keywordArguments(kwargs); err != nil {
				return exitWith(exitUsage, err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return makeCall(ctx, sh, newClient(o), session, body, whole)
		},
	}
	c.Flags().StringArrayVar(&kwargs, "kwargs", nil, "keyword argument NAME=VALUE, or a JSON object; may be repeated")
	c.Flags().StringVar(&session, "session", "", "id of the session to call in")
	c.Flags().BoolVar(&whole, "json", false, "print the whole reply as JSON")
	addFlags(clientScope, c.Flags())
	return c
}

func makeCall(ctx context.Context, sh shell, c *client, session string, body callBody, whole bool) error {
	if session == "" {
		id, err := c.createSession(ctx, body.Role, nil)
		if err != nil {
			return exitWith(exitUnreachable, err)
		}
		session = id
		fmt.Fprintf(sh.stderr, "session %s\n", id)
	}
	stop := startSpinner(sh, fmt.Sprintf("%s.%s: a new method is forged once, then kept", body.Role, body.Method))
	reply, raw, err := c.call(ctx, session, body)
	stop()
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; the call was canceled")
		}
		return exitWith(exitUnreachable, err)
	}
	if whole {
		fmt.Fprintf(sh.stdout, "%s\n", bytes.TrimSpace(raw))
	}
	if o := reply.Outcome; !o.OK() {
		if whole {
			return &exitError{Code: exitFailed}
		}
		return exitWith(exitFailed, fmt.Errorf("%s.%s ended in %s: %s", reply.Role, reply.Method, o.ErrorType, o.ErrorMessage))
	}
	if !whole {
		fmt.Fprintf(sh.stdout, "%s\n", reply.Outcome.Value)
	}
	return nil
}

// jsonOrText takes an argument as JSON where it is JSON, else as text.
func jsonOrText(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(strings.TrimSpace(text))
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("a string has no JSON form: " + err.Error()) // encoding/json writes every string
	}
	return quoted
}

// keywordArguments reads NAME=VALUE pairs and whole JSON objects; the last one of a name counts.
func keywordArguments(list []string) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, item := range list {
		if strings.HasPrefix(strings.TrimSpace(item), "{") {
			if err := json.Unmarshal([]byte(item), &all); err != nil {
				return nil, fmt.Errorf("--kwargs: %q is not a JSON object", item)
			}
			continue
		}
		name, value, ok := strings.Cut(item, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--kwargs: %q is not NAME=VALUE", item)
		}
		all[name] = jsonOrText(value)
	}
	return json.Marshal(all)
}

// shieldNumbers puts a space before the negative numbers among the arguments of call, so that -5 is the number that
// it looks like and not a flag. JSON does not mind the space.
func shieldNumbers(args []string) []string {
	if len(args) == 0 || args[0] != "call" {
		return args
	}
	out := make([]string, len(args))
	for i, a := range args {
		if len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' && json.Valid([]byte(a)) {
			a = " " + a
		}
		out[i] = a
	}
	return out
}
