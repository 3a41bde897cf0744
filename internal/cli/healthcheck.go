package cli

import (
	"context"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// healthcheckCommand is for container images without a shell: HEALTHCHECK CMD ["recurgentd", "healthcheck"].
func healthcheckCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{Use: "healthcheck", Hidden: true, Short: "Exit with 0 when the daemon answers and is ready", Args: cobra.NoArgs,
		Long:    "Exit with 0 when the daemon answers and is ready: for container images without a shell.\n\n" + exitsOfClients,
		Example: "  recurgentd healthcheck --url http://127.0.0.1:8420",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := loadOptions(ClientScope, cmd.Flags(), sh.Env)
			if err != nil {
				return exitWith(ExitUsage, err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
			defer cancel()
			_, err = newClient(o).do(ctx, http.MethodGet, "/readyz", nil)
			return exitWith(ExitUnreachable, err)
		}}
	addFlags(ClientScope, c.Flags())
	return c
}
