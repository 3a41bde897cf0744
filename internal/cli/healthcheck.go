package cli

import (
	"context"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/client"
)

// healthcheckCommand serves container images without a shell: HEALTHCHECK CMD ["recurgentd", "healthcheck"].
func healthcheckCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{Use: "healthcheck", Hidden: true, Short: "Exit with 0 when the daemon answers and is ready",
		Args: cobra.NoArgs,
		Long: "Exit with 0 when the daemon answers and is ready: for container images without a shell.\n\n" +
			exitsOfClients,
		Example: "  recurgentd healthcheck --url http://127.0.0.1:8420",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
				_, err := c.Do(ctx, http.MethodGet, "/readyz", nil)
				return exitWith(ExitUnreachable, err)
			})
		}}
	addFlags(ClientScope, c.Flags(), "namespace") // it concerns the whole daemon
	return c
}
