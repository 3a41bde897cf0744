package main

import (
	"context"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// healthcheckCommand is for container images without a shell: HEALTHCHECK CMD ["recurgentd", "healthcheck"].
func healthcheckCommand(sh shell) *cobra.Command {
	c := &cobra.Command{Use: "healthcheck", Hidden: true, Short: "Exit with 0 when the daemon answers and is ready", Args: cobra.NoArgs,
		Long:    "Exit with 0 when the daemon answers and is ready: for container images without a shell.\n\n" + exitsOfClients,
		Example: "  recurgentd healthcheck --url http://127.0.0.1:8420",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := loadOptions(clientScope, cmd.Flags(), sh.env)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
			defer cancel()
			_, err = newClient(o).do(ctx, http.MethodGet, "/readyz", nil)
			return exitWith(exitUnreachable, err)
		}}
	addFlags(clientScope, c.Flags())
	return c
}
