package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

func recommendCommand(sh Shell) *cobra.Command {
	var undo bool
	var out *output
	var status, apply, dismiss, reason string
	c := &cobra.Command{
		Use:   "recommend",
		Short: "Print what the daemon recommends from evidence, and decide about it",
		Long: `Print the daemon's recommendations, best first: stronger contracts, new programs, split roles, each
with its evidence. Nothing is applied automatically: --apply and --dismiss decide, and --undo reverts that.

` + exitsOfClients,
		Example: `  recurgentd recommend
  recurgentd recommend --apply rec_8c1f2b7a9d0e4c6b5a31 --reason "users keep asking again"
  recurgentd recommend --apply rec_8c1f2b7a9d0e4c6b5a31 --undo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verb, id := "apply", apply
			switch {
			case apply != "" && dismiss != "":
				return exitWith(ExitUsage, errors.New("--apply and --dismiss cannot be used together"))
			case undo && apply == "" && dismiss == "":
				return exitWith(ExitUsage, errors.New("--undo needs --apply or --dismiss: it undoes one of them"))
			case dismiss != "":
				verb, id = "dismiss", dismiss
			}
			return sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				if id == "" {
					return exitWith(ExitUnreachable, printAdvice(ctx, out, c, status))
				}
				return exitWith(ExitUnreachable, decide(ctx, out, c, url.PathEscape(id)+"/"+verb,
					map[string]any{"reason": reason, "undo": undo}))
			})
		},
	}
	f := c.Flags()
	out = addOutput(c, sh)
	f.StringVar(&status, "status", "open", "which ones: open, applied or dismissed")
	f.StringVar(&apply, "apply", "", "do what the recommendation of this id proposes")
	f.StringVar(&dismiss, "dismiss", "", "take the recommendation of this id off the list")
	f.BoolVar(&undo, "undo", false, "take back an earlier --apply or --dismiss")
	f.StringVar(&reason, "reason", "", "why; kept in the audit trail")
	addFlags(ClientScope, f)
	return c
}

// printAdvice prints the recommendations with that status.
func printAdvice(ctx context.Context, out *output, c *client.Client, status string) error {
	path := "/v1/recommendations?limit=1000&status=" + url.QueryEscape(status)
	if !out.human() {
		data, err := c.Do(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		return out.document(data)
	}
	var list struct {
		Data []operator.Advice `json:"data"`
	}
	if err := c.Get(ctx, path, &list); err != nil {
		return err
	}
	if len(list.Data) == 0 {
		return out.line("nothing to recommend")
	}
	for _, a := range list.Data {
		if err := out.line("%s", text.Plain(describeAdvice(a))); err != nil {
			return err
		}
	}
	return nil
}

func describeAdvice(a operator.Advice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s.%s  score %.2f\n    %s\n", a.ID, a.Kind, a.Role, a.Method, a.Score,
		text.OneLine(a.Reason))
	if a.Proposal.Constraint != "" {
		fmt.Fprintf(&b, "    proposal: %s = %v\n", a.Proposal.Constraint, a.Proposal.Value)
	}
	if s := a.Simulation; s != nil {
		fmt.Fprintf(&b, "    of %d ok calls %d would have failed: of these %d were asked again, %d were taken\n",
			s.Calls, s.WouldFail, s.WouldFailReasked, s.WouldFailAccepted)
	}
	if a.CallerContracts > 0 {
		fmt.Fprintf(&b, "    %d calls brought a deliverable of their own, which wins over the registry's: change it there too\n", a.CallerContracts)
	}
	fmt.Fprintf(&b, "    evidence: %s", strings.Join(a.Evidence, " "))
	return b.String()
}

// decide applies or dismisses a recommendation, or undoes that. path names both.
func decide(ctx context.Context, out *output, c *client.Client, path string, body map[string]any) error {
	data, err := c.Do(ctx, http.MethodPost, "/v1/recommendations/"+path, body)
	if err != nil {
		return err
	}
	if !out.human() {
		return out.document(data)
	}
	var a operator.Advice
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("the reply is not in recurgentd's format: %w", err)
	}
	return out.line("%s is %s", text.Cell(a.ID), text.Cell(a.Status))
}
