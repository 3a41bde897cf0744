package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// checkConnections checks the key file and reports connections whose secrets are unavailable. It reads the database, or
// the store's files, which a running daemon may have open.
func checkConnections(ctx context.Context, o Options) finding {
	f := finding{Check: "secrets", Result: checkOK, Detail: "no connections"}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	all, problem, err := app.StoredConnections(ctx, o.Options)
	if err != nil && o.Database() {
		return finding{Check: "secrets", Result: checkWarn, Detail: "the database cannot be asked for connections: " +
			err.Error(), Fix: "see what is said of the database"}
	}
	if err != nil {
		return finding{Check: "secrets", Result: checkFail, Detail: err.Error(),
			Fix: "recurgentd store verify says what is damaged"}
	}
	if key, err := os.Stat(o.SecretsKey()); err == nil && key.Mode()&fs.FileMode(0o077) != 0 {
		return finding{Check: "secrets", Result: checkWarn, Detail: o.SecretsKey() +
			" can be read by other users of this machine", Fix: "chmod 0600 " + o.SecretsKey()}
	}
	if len(all) == 0 {
		return f
	}
	var unusable []string
	for i := range all {
		if all[i].Auth.Env != "" {
			continue // the daemon's environment may differ from this one
		}
		if why := problem(&all[i]); why != "" {
			unusable = append(unusable, all[i].Name+": "+why)
		}
	}
	if f.Detail = text.Plural(len(all), "connection") + ", whose secrets can be had"; len(unusable) > 0 {
		f.Result, f.Detail = checkWarn, fmt.Sprintf("%d of %s cannot be used: %s", len(unusable),
			text.Plural(len(all), "connection"), strings.Join(unusable, "; "))
		f.Fix = "see docs/connections.md; recurgentd connections set NAME gives a new secret"
	}
	return f
}
