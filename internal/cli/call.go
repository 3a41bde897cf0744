package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

func callCommand(sh Shell) *cobra.Command {
	var kwargs []string
	errand := &callErrand{sh: sh}
	c := &cobra.Command{
		Use:   "call ROLE METHOD [ARG...]",
		Short: "Make one call and print its value",
		Long: `Make one call and print its value on stdout. Arguments and keyword arguments are JSON where they
parse as JSON, else text. --raw prints a text as it is, without quotes and escapes. The id of the call is printed on
stderr, for recurgentd why and wrong; without --session the call gets a session of its own, whose id is
printed, too. --file NAME=FILE uploads a file of any size
and refers to it in the keyword argument NAME; --out DIR downloads the files that the value refers to. On a terminal, stderr shows the progress
of the call (queued, forging, the gate, running, repairing) in one line, and after 10 s in the same
stage what the call waits for. With --stream it does so in a pipe, too, one line per stage;
--stream=false switches it off.

Exit status: 0 for a value, 1 for an error outcome, 2 for a wrong command line, 3 when no daemon
answers or it refuses the request.`,
		Example: `  recurgentd call calculator add 2 3
  recurgentd call calculator increment --kwargs amount=5 --session SESSION
  recurgentd call text_tools slugify "Crème Brûlée" --raw
  recurgentd call sales total --file sales=sales.csv --out reports
  recurgentd call calculator solve "2x + 5 = 17" --stream`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("call needs a role and a method, such as: recurgentd call calculator add 2 3")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r := client.CallRequest{Role: args[0], Method: args[1]}
			for _, a := range args[2:] {
				r.Args = append(r.Args, client.Value(a))
			}
			var err error
			if r.Kwargs, err = keywordArguments(kwargs); err != nil {
				return exitWith(ExitUsage, err)
			}
			if _, terminal := sh.terminal(sh.Stderr); terminal && !cmd.Flags().Changed("stream") {
				errand.stream = true
			}
			return sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				return errand.run(ctx, c,
					r)
			})
		},
	}
	c.Flags().StringArrayVar(&kwargs, "kwargs", nil, "keyword argument NAME=VALUE, or a JSON object; may be repeated")
	c.Flags().StringArrayVar(&errand.files, "file", nil,
		"file to upload, NAME=FILE, - for standard input; the keyword argument NAME refers to it; may be repeated")
	c.Flags().StringVar(&errand.download.dir, "out", "",
		"directory for the files that the value refers to; it is made if it is missing")
	c.Flags().BoolVar(&errand.download.overwrite, "overwrite", false, "let --out replace files that exist")
	c.Flags().StringVar(&errand.session, "session", "", "id of the session to call in")
	c.Flags().BoolVar(&errand.raw, "raw", false, "print a value that is a text as it is")
	c.Flags().BoolVar(&errand.stream, "stream", false,
		"show on stderr what happens while the call runs (default on a terminal)")
	errand.out = addOutput(c, sh)
	c.MarkFlagsMutuallyExclusive("raw", "output")
	c.MarkFlagsMutuallyExclusive("raw", "json")
	completeArgs(sh, c, false)
	addFlags(ClientScope, c.Flags())
	return c
}

// A callErrand is one run of the command call.
type callErrand struct {
	sh      Shell
	out     *output
	session string
	stream  bool
	raw     bool
	sent    client.CallRequest

	files    []string // NAME=FILE
	download download
}

// run makes the call, in a new session unless one is given, and prints the result. It uploads files first and downloads
// files last.
func (t *callErrand) run(ctx context.Context, c *client.Client, r client.CallRequest) error {
	// Check before a session is created.
	if err := t.filesFit(); err != nil {
		return err
	}
	if t.session == "" {
		id, err := c.CreateSession(ctx, r.Role)
		if err != nil {
			return exitWith(ExitUnreachable, err)
		}
		t.session = id
		fmt.Fprintf(t.sh.Stderr, "session %s\n", text.Clean(id, 0))
	}
	var err error
	if r.Kwargs, err = t.upload(ctx, c, r.Kwargs); err != nil {
		return err
	}
	reply, raw, err := t.make(ctx, c, r)
	if err != nil {
		if ctx.Err() != nil {
			t.printCanceled(ctx, c, r)
			err = errors.New("interrupted; the call was canceled")
		}
		return exitWith(ExitUnreachable, err)
	}
	if _, terminal := t.sh.terminal(t.sh.Stderr); terminal || !t.stream { // otherwise the progress lines contain it
		fmt.Fprintf(t.sh.Stderr, "call %s\n", text.Clean(reply.CallID, 0))
	}
	t.sent = r
	if err := t.print(reply, raw); err != nil || t.download.dir == "" {
		return err
	}
	return exitWith(ExitFailed, t.download.all(ctx, c, t.sh.Stderr, reply.Outcome.Value))
}

// printCanceled prints the id of the interrupted call, unless the progress lines contain it. It asks the daemon for the
// newest call of the session, because the reply with the id never came.
func (t *callErrand) printCanceled(ctx context.Context, c *client.Client, r client.CallRequest) {
	if t.stream {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	q := url.Values{"session_id": {t.session}, "role": {r.Role}, "method": {r.Method}, "limit": {"1"}}
	var page struct {
		Data []agent.LogEntry `json:"data"`
	}
	if c.Get(ctx, "/v1/calls?"+q.Encode(), &page) == nil && len(page.Data) > 0 {
		fmt.Fprintf(t.sh.Stderr, "call %s\n", text.Clean(page.Data[0].CallID, 0))
	}
}

// make makes the call, with progress on stderr if requested.
func (t *callErrand) make(ctx context.Context, c *client.Client, r client.CallRequest) (runtime.Reply, []byte, error) {
	if t.stream {
		progress := newStages(t.sh, r)
		defer progress.stop()
		return c.CallWithProgress(ctx, t.session, r, progress)
	}
	return c.Call(ctx, t.session, r)
}

// print prints the value, or with --output the whole reply. For an error outcome it returns an error with the exit
// code.
func (t *callErrand) print(reply runtime.Reply, raw []byte) error {
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
		return exitWith(ExitFailed, errors.New(failureOf(reply)+localFile(t.sent, &o)))
	}
	return exitWith(ExitFailed, t.value(o.Value))
}

// failureOf describes an error outcome. Where the message only says that retries were used up, it adds the last failure
// and the command that explains the call.
func failureOf(reply runtime.Reply) string {
	o := reply.Outcome
	said := fmt.Sprintf("%s.%s ended in %s: %s", reply.Role, reply.Method, o.ErrorType, o.ErrorMessage)
	if last, ok := o.Metadata["raw_error_message"].(string); ok {
		said += fmt.Sprintf(" The last failure: %v: %s; recurgentd why %s explains the call",
			o.Metadata["raw_error_type"], last, reply.CallID)
	}
	return said
}

// value prints the value. With --raw, a string is printed without quotes, and on a terminal without control sequences.
func (t *callErrand) value(value json.RawMessage) error {
	var plain string
	if !t.raw || json.Unmarshal(value, &plain) != nil || agent.Kind(value) != "string" {
		return t.out.line("%s", t.out.readable(value))
	}
	if _, terminal := t.sh.terminal(t.sh.Stdout); terminal {
		plain = text.Verbatim(plain)
	}
	return t.out.line("%s", plain)
}

// keywordArguments parses NAME=VALUE pairs and whole JSON objects. Later values override earlier ones.
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
		all[name] = client.Value(value)
	}
	return json.Marshal(all)
}

// shieldNumbers prefixes negative numbers among the arguments of call and tools try with a space, so that -5 is not
// parsed as a flag. JSON allows the space.
func shieldNumbers(args []string) []string {
	takes := len(args) > 0 && args[0] == "call" || len(args) > 1 && args[0] == "tools" && args[1] == "try"
	if !takes {
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

// patience is how long a stage lasts before the reason for the wait is reported.
const patience = 10 * time.Second

// stages reports a call's progress on stderr: on a terminal one line that changes, otherwise one line per stage. For a
// long stage it also reports what the call waits for. It is safe for concurrent use.
type stages struct {
	sh   Shell
	what string // role.method
	spin *spinner

	mu      sync.Mutex
	waiting string      // the reason for waiting; guarded by mu
	timer   *time.Timer // fires late in the stage; guarded by mu
	ended   bool        // guarded by mu
}

// newStages starts the report of a call. The caller must call stop.
func newStages(sh Shell, r client.CallRequest) *stages {
	what := text.Clean(r.Role+"."+r.Method, 40)
	s := &stages{sh: sh, what: what, spin: startSpinner(sh, what+": started"),
		waiting: "the daemon has not started the call"}
	s.timer = time.AfterFunc(patience, s.late)
	return s
}

// stop ends the report. A timer that fires afterwards prints nothing.
func (s *stages) stop() {
	s.mu.Lock()
	s.ended = true
	s.timer.Stop()
	s.mu.Unlock()
	s.spin.stop()
}

// say reports a stage, and sets what the call waits for in it.
func (s *stages) say(stage, waiting string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = waiting
	s.timer.Reset(patience)
	s.print(stage)
}

// late reports what the call waits for.
func (s *stages) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && s.waiting != "" {
		s.print("waiting: " + s.waiting)
	}
}

// print reports words. The caller holds mu.
func (s *stages) print(words string) {
	s.spin.say(s.what + ": " + words)
	if _, terminal := s.sh.terminal(s.sh.Stderr); !terminal {
		fmt.Fprintf(s.sh.Stderr, "%s: %s\n", s.what, words)
	}
}

func (s *stages) Started(callID string) {
	s.say("started as "+text.Clean(callID, 0), "the daemon has not said what the call does")
}

func (s *stages) Connected(gone error) {
	if gone != nil {
		s.say("connecting again: "+text.Clean(gone.Error(), 0), "the daemon cannot be reached; the call may still run")
	}
}

func (s *stages) Event(e client.Event) {
	if words, waiting := stage(e); words != "" {
		s.say(words, waiting)
	}
}

// stage returns a description of an event and of what the call then waits for, or "" for an unknown event.
func stage(e client.Event) (words, waiting string) {
	var d struct {
		Kind, Trigger, Decision, Reason string
		Stage                           string
		Ahead                           int
		ErrorType                       string `json:"error_type"`
		ErrorMessage                    string `json:"error_message"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return "", ""
	}
	trigger := " (" + text.Clean(d.Trigger, 40) + ")"
	switch e.Type {
	case progress.Queued:
		return "queued behind " + text.Plural(d.Ahead, "call"),
			"the calls of a session run in order, and earlier ones have not ended"
	case progress.Gate:
		return "the program is at the gate", "the new program is checked and compiled"
	case progress.Building:
		return "compiling the stored program", "the compiler has not ended"
	case progress.Selected:
		return text.Clean("selected: "+d.Decision+" ("+d.Reason+")", 0), "the program has not ended"
	case progress.Forging:
		if d.Kind == "repair" {
			return "repairing" + trigger, "the model has not sent the repaired program"
		}
		return "forging" + trigger, "the model has not sent the program"
	case progress.Running:
		return "running a new program" + trigger, "the program has not ended"
	case progress.AttemptFailed:
		return text.Clean("failed in "+d.Stage+": "+d.ErrorType+": "+d.ErrorMessage, 0),
			"the daemon decides how to recover"
	}
	return "", ""
}
