package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
)

// getUsage reports what models were asked. Without the scope operate one sees one's own.
func (s *server) getUsage(w *reply, r *http.Request) error {
	q := readQuery(r)
	u := spend.UsageQuery{By: q.oneOf("by", spend.ByRole, spend.ByMethod, spend.ByOwner, spend.ByDay), Since: q.time("since"), Until: q.time("until"),
		After: q.integer("after", 0, 0, store.MaxSpendRows), Limit: q.integer("limit", 0, 1, maxLimit)}
	if u.By == "" {
		u.By = spend.ByDay
	}
	if !u.Since.IsZero() && !u.Until.IsZero() && u.Until.Before(u.Since) {
		q.bad("until", "is before since")
	}
	if err := q.err(); err != nil {
		return err
	}
	if !w.who.Scopes.Has(access.Operate) {
		owner := w.owner // w is used again
		u.Owner = &owner
	}
	u.Daemon = w.who.Scopes.Has(access.Admin)
	report, err := w.run.Usage(r.Context(), u)
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, report)
}

// warnOfSpend says in a header how much is used of a cap that the call counts for, once that is 80 percent. Of the daemon's only those hear who
// may see it.
func (s *server) warnOfSpend(w *reply, role, method string) {
	if ratio, near := w.run.Nearly(w.owner, role, method, w.who.Scopes.Has(access.Admin)); near {
		w.Header().Set("Recurgent-Spend", strconv.FormatFloat(ratio, 'f', 2, 64))
	}
}

// overCap is the problem of a prediction for which the model was not asked.
func overCap(p *Problem, l *spend.Limit) *Problem {
	p.Meta["scope"], p.Meta["window"], p.Meta["limit"], p.Meta["used"], p.Meta["resets_at"] = l.Scope, l.Window, l.Limit, l.Used, l.ResetsAt
	p.retry = strconv.Itoa(max(1, int(time.Until(l.ResetsAt).Seconds())))
	return p
}
