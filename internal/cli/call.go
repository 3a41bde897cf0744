package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/runtime"
)

func callCommand(sh Shell) *cobra.Command {
	var kwargs []string
	errand := &callErrand{sh: sh}
	c := &cobra.Command{
		Use:   "call ROLE METHOD [ARG...]",
		Short: "Make one call and print its value",
		Long: `Make one call and print its value on stdout. Arguments and keyword arguments are JSON where they
parse as JSON, else text. Without --session the call gets a session of its own, whose id is told
on stderr. With --stream stderr tells what happens meanwhile: queued, forging, the gate, running,
repairing.

Exit status: 0 for a value, 1 for an error outcome, 2 for a wrong command line, 3 when no daemon
answers or it refuses the request.`,
		Example: `  recurgentd call calculator add 2 3
  recurgentd call calculator increment --kwargs amount=5 --session SESSION
  recurgentd call text_tools slugify "Crème Brûlée" --output json
  recurgentd call calculator solve "2x + 5 = 17" --stream`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("call needs a role and a method, such as: recurgentd call calculator add 2 3")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := loadOptions(ClientScope, cmd.Flags(), sh.Env)
			if err != nil {
				return exitWith(ExitUsage, err)
			}
			body := callBody{Role: args[0], Method: args[1]}
			for _, a := range args[2:] {
				body.Args = append(body.Args, jsonOrText(a))
			}
			if body.Kwargs, err = keywordArguments(kwargs); err != nil {
				return exitWith(ExitUsage, err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			errand.c = newClient(o)
			return errand.run(ctx, body.filled())
		},
	}
	c.Flags().StringArrayVar(&kwargs, "kwargs", nil, "keyword argument NAME=VALUE, or a JSON object; may be repeated")
	c.Flags().StringVar(&errand.session, "session", "", "id of the session to call in")
	c.Flags().BoolVar(&errand.stream, "stream", false, "tell on stderr what happens while the call runs")
	errand.out = addOutput(c, sh)
	addFlags(ClientScope, c.Flags())
	return c
}

// A callErrand is one run of the call command.
type callErrand struct {
	sh      Shell
	c       *client
	out     *output
	session string
	stream  bool
}

func (t *callErrand) run(ctx context.Context, body callBody) error {
	if t.session == "" {
		id, err := t.c.createSession(ctx, body.Role, nil)
		if err != nil {
			return exitWith(ExitUnreachable, err)
		}
		t.session = id
		fmt.Fprintf(t.sh.Stderr, "session %s\n", clean(id, 0))
	}
	make := t.c.call
	if t.stream {
		make = t.streamed
	}
	spin := &spinner{stop: func() {}}
	if !t.stream {
		spin = startSpinner(t.sh, fmt.Sprintf("%s.%s: a new method is forged once, then kept", body.Role, body.Method))
	}
	reply, raw, err := make(ctx, t.session, body)
	spin.stop()
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; the call was canceled")
		}
		return exitWith(ExitUnreachable, err)
	}
	return t.tell(reply, raw)
}

// tell prints the value, or the whole reply for scripts. An error outcome is the exit code's business too.
func (t *callErrand) tell(reply runtime.Reply, raw []byte) error {
	o := reply.Outcome
	switch {
	case !t.out.human():
		if err := t.out.document(raw); err != nil {
			return exitWith(ExitFailed, err)
		}
		if !o.OK() {
			return &exitError{Code: ExitFailed}
		}
		return nil
	case !o.OK():
		return exitWith(ExitFailed, fmt.Errorf("%s.%s ended in %s: %s", reply.Role, reply.Method, o.ErrorType, o.ErrorMessage))
	}
	return exitWith(ExitFailed, t.out.line("%s", visibleJSON(o.Value)))
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
