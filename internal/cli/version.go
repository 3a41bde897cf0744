package cli

import (
	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/app"
)

func versionCommand(sh Shell) *cobra.Command {
	var out *output
	c := &cobra.Command{Use: "version", Short: "Print the version of this binary", Args: cobra.NoArgs,
		Long: "Print the version of this binary: of the release, of Go, and of the source it was built from.\n\n" +
			exitsOfAll,
		Example: "  recurgentd version\n  recurgentd version --output yaml",
		RunE: func(*cobra.Command, []string) error {
			b := app.ReadBuild()
			if out.human() {
				return exitWith(ExitFailed, out.line("%s", b))
			}
			return exitWith(ExitFailed, out.value(b))
		}}
	out = addOutput(c, sh)
	return c
}
