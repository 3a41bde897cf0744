package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/recurgentd/recurgentd/internal/store/postgres"
)

// databaseTimeout bounds an examination of the database.
const databaseTimeout = 10 * time.Second

// checkDatabase examines the database that serve would use, without changing it; found is false if there is none. The
// finding states which acknowledged data may be lost in the worst case.
func checkDatabase(ctx context.Context, sh Shell, flags *pflag.FlagSet) (f finding, found bool) {
	f = finding{Check: "database", Result: checkFail, Fix: "see --store, RECURGENT_STORE and --store-file"}
	var text [2]string
	for i, name := range []string{"store", "store-file"} {
		if flag := flags.Lookup(name); flag != nil && flag.Changed {
			text[i] = flag.Value.String()
		}
	}
	address, shown, err := databaseFlags{&text[0], &text[1]}.named(sh, "")
	if err == nil && address == "" {
		return f, false
	}
	if err != nil {
		f.Detail = err.Error()
		return f, true
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	x, err := postgres.Examine(ctx, postgres.DefaultOptions(address))
	switch {
	case err != nil:
		f.Detail, f.Fix = fmt.Sprintf("%s: %s", shown, err),
			"check that the server runs, that its address and user are right, and that it lets this machine in"
	case len(x.Problems) > 0:
		f.Detail, f.Fix = fmt.Sprintf("%s, PostgreSQL %s: %s", shown, x.Server, strings.Join(x.Problems, "; ")),
			"recurgentd serve would not start, or not work, before that is put right"
	default:
		f.Result, f.Fix, f.Detail = checkOK, "", fmt.Sprintf("%s, PostgreSQL %s, tables of form %d of %d; %s", shown,
			x.Server, x.Form, x.Newest, x.Promise)
		if !x.Durable {
			f.Result, f.Fix = checkWarn,
				"a synchronous standby is required for nothing acknowledged to be lost: synchronous_standby_names and synchronous_commit = on"
		}
	}
	return f, true
}
