package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
)

func whyCommand(sh Shell) *cobra.Command {
	var out *output
	c := &cobra.Command{
		Use:   "why CALL_ID",
		Short: "Explain a call: what answered and why, what it did and cost, what to do next",
		Long: `Explain a call: which program answered and why that one, what else there was, what it fetched and delegated,
what was checked, what it cost, what another policy would have decided, and what to do next, as commands and
requests. The selection is run again on what is kept of the method, with one switch of the policy flipped
each; the page says what is not known any more. What models, programs and pages wrote stands quoted.

Exit status: 0 when the page is there, 2 for a wrong command line, 3 when no daemon answers or it does not
know the call.`,
		Example: "  recurgentd why call_06gzqwq081srb0e6zx42fm96t4\n  recurgentd why call_06gzqwq081srb0e6zx42fm96t4 --output json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				path := "/v1/calls/" + url.PathEscape(args[0]) + "/why"
				data, err := c.Do(ctx, http.MethodGet, path, nil)
				if err != nil {
					return exitWith(ExitUnreachable, err)
				}
				if !out.human() {
					return exitWith(ExitFailed, out.document(data))
				}
				var x why.Explanation
				if err := json.Unmarshal(data, &x); err != nil {
					return exitWith(ExitUnreachable, fmt.Errorf("the reply to GET %s: %w", path, err))
				}
				page := x.Text(func(title string) string { return out.colours().Paint(text.Live, title) })
				return exitWith(ExitFailed, out.line("%s", strings.TrimSuffix(page, "\n")))
			})
		},
	}
	out = addOutput(c, sh)
	addFlags(ClientScope, c.Flags())
	return c
}
