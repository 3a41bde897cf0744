package cli

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/client"
)

// contractCommand returns the commands that decide on contracts proposed by programs.
func contractCommand(sh Shell) *cobra.Command {
	const parent = "recurgentd tools contract"
	root := &cobra.Command{Use: "contract", Short: "Decide on contracts that programs proposed for a role",
		Args: cobra.NoArgs,
		Long: `Decide on contracts that programs proposed for a role: stricter ones than that of a person, or of another owner's program.
recurgentd inbox --kind proposal lists them, with their ids.

` + exitsOfClients,
		Example: "  recurgentd tools contract accept cinema prop_e5fae528c1883da60570d0f2"}
	for _, decision := range []struct{ name, short string }{{"accept",
		"Put a proposed contract in the place of the role's"}, {"reject",
		"Reject a proposed contract: it is not proposed again"}} {
		root.AddCommand(operatorCommand(sh, parent, operation{use: decision.name + " ROLE ID", short: decision.short,
			example: "cinema prop_e5fae528c1883da60570d0f2", least: 2, most: 2,
			run: func(t *errand) error {
				data, err := t.c.Do(t.ctx, http.MethodPost, client.ToolPath(t.args[0])+"/proposals/"+
					url.PathEscape(t.args[1])+"/"+decision.name, nil)
				if err != nil {
					return err
				}
				if !t.out.human() {
					return t.out.document(data)
				}
				return t.out.indented(data)
			}}))
	}
	return root
}
