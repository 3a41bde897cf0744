package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// inboxEntry is an entry of the inbox.
type inboxEntry struct {
	operator.Waiting
	Evidence json.RawMessage `json:"evidence"`
}

func inboxCommand(sh Shell) *cobra.Command {
	var kind string
	c := operatorCommand(sh, "recurgentd", operation{use: "inbox [ROLE [METHOD]]",
		short: "List what waits for a person's decision, with the commands that decide it", example: "--kind approval",
		most: 2,
		long: `List what waits for a person's decision, the newest first, with the commands that decide it: programs that wait for an
approval, corrections that nothing goes on with, examples and verdicts that somebody proposed, contracts that a program
proposed, open recommendations, and effects that nobody has approved. An entry goes away when it is decided. With --output json each has its evidence.`,
		run: func(t *errand) error { return t.inbox(kind) }})
	c.Flags().StringVar(&kind, "kind", "", "only "+strings.Join(operator.InboxKinds(), ", "))
	if err := c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(operator.InboxKinds(),
		cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("the flag --kind was declared above: " + err.Error())
	}
	return c
}

// inbox prints the waiting decisions with the commands that decide them.
func (t *errand) inbox(kind string) error {
	v := url.Values{}
	if kind != "" {
		v.Set("kind", kind)
	}
	for i, name := range []string{"role", "method"} {
		if len(t.args) > i {
			v.Set(name, t.args[i])
		}
	}
	waiting, err := pages[inboxEntry](t, "/v1/inbox?"+v.Encode())
	if err != nil || !t.out.human() {
		return err
	}
	if len(waiting) == 0 {
		return t.out.line("nothing waits for a decision")
	}
	for i := range waiting {
		w := &waiting[i]
		if err := t.out.line("%s %s, since %s: %s", text.Cell(w.Kind),
			text.Cell(strings.TrimSuffix(w.Role+"."+w.Method, ".")), text.Cell(w.Since),
			text.Clean(w.Summary, 400)); err != nil {
			return err
		}
		for _, op := range w.Operations {
			if err := t.out.line("  %s: %s", text.Clean(op.Name, 200), request(op)); err != nil {
				return err
			}
		}
	}
	return nil
}

// request returns the command for the operation. If there is none, or it contains unprintable characters, it returns
// the request.
func request(op operator.InboxOperation) string {
	const most = 2000 // columns
	if op.Command != "" && text.Clean(op.Command, most) == op.Command {
		return op.Command
	}
	body := strings.TrimSuffix(" "+string(op.Body), " null")
	return text.Clean(strings.TrimSpace(op.Method+" "+op.Path+body), most)
}

func simulateCommand(sh Shell) *cobra.Command {
	var calls int
	c := operatorCommand(sh, "recurgentd policy", operation{use: "simulate NAME=VALUE... | JSON",
		short:   "See for which of the last calls another policy would decide otherwise; changes nothing",
		example: "approval_required=true", least: 1, most: 64,
		long: `See for which of the last calls another policy would decide otherwise: their selection is run again, under the policy
in force and under the changed one. Nothing is changed. NOT KNOWN counts calls of which too little is kept.`,
		run: func(t *errand) error { return t.simulate(calls) }})
	c.Flags().IntVar(&calls, "calls", 500, "how many of the newest calls to look at, at most 1000")
	return c
}

// simulate prints the calls that another policy would decide differently.
func (t *errand) simulate(calls int) error {
	patch, err := agent.PolicyPatch(t.args)
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	const path = "/v1/policy/simulate"
	data, err := t.c.Do(t.ctx, http.MethodPost, path, map[string]any{"patch": patch, "calls": calls})
	if err != nil {
		return err
	}
	if !t.out.human() {
		return t.out.document(data)
	}
	var s operator.Simulation
	if err := t.read(path, data, &s); err != nil {
		return err
	}
	if err := t.out.line("%d of %d calls would be decided otherwise; not known of %d", len(s.Changed), s.LookedAt,
		s.NotKnown); err != nil {
		return err
	}
	if w := s.Approval; w != nil {
		if err := t.out.line("%d programs would wait for approval, %d of them durable", w.Waiting,
			w.Durable); err != nil {
			return err
		}
	}
	if len(s.Changed) == 0 {
		return nil
	}
	var rows [][]string
	for _, c := range s.Changed {
		rows = append(rows, []string{c.CallID, c.Role + "." + c.Method, decided(c.Was), decided(c.WouldBe)})
	}
	return t.table("CALL METHOD WAS WOULD-BE", rows)
}

// decided formats a selection for a table.
func decided(s agent.Selection) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", s.Decision, s.Generation)) + " (" + s.Reason + ")"
}
