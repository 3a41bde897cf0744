package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
)

// getUsage reports token usage and stored bytes. Without the scope operate, a principal sees only its own.
func (s *server) getUsage(w *reply, r *http.Request) error {
	q := readQuery(r)
	u := spend.UsageQuery{By: q.oneOf("by", spend.ByRole, spend.ByMethod, spend.ByOwner, spend.ByDay),
		Since: q.time("since"), Until: q.time("until"),
		After: q.integer("after", 0, 0, store.MaxSpendRows), Limit: q.integer("limit", 0, 1, maxLimit)}
	ownersAfter := q.text("storage_after")
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
		owner := w.owner
		u.Owner = &owner
	}
	// the daemon's own cap is for its operator only
	u.Daemon = w.who.Scopes.Has(access.Admin)
	report, err := w.run.Usage(r.Context(), u)
	if err != nil {
		return err
	}
	if report.Storage, report.StorageNext, err = storedBy(w, r, ownersAfter); err != nil {
		return err
	}
	return s.send(w, http.StatusOK, report)
}

// storedBy returns a page of what owners have stored. Without the scope operate it is the principal's own only.
func storedBy(w *reply, r *http.Request, after string) (list []store.OwnerBytes, next *string, err error) {
	if !w.who.Scopes.Has(access.Operate) {
		own, err := w.run.Stored(r.Context(), w.owner)
		return []store.OwnerBytes{own}, nil, err
	}
	list, err = w.run.ListStored(r.Context(), after, maxLimit+1)
	if len(list) > maxLimit {
		list = list[:maxLimit]
		next = &list[maxLimit-1].Owner
	}
	return append([]store.OwnerBytes{}, list...), next, err
}

// warnOfSpend sets a header with the used share of a cap, once 80 percent of a cap that applies to the call are used.
// The daemon's own cap is considered for admins only.
func (s *server) warnOfSpend(w *reply, role, method string) {
	if ratio, near := w.run.Nearly(w.owner, role, method, w.who.Scopes.Has(access.Admin)); near {
		w.Header().Set("Recurgent-Spend", strconv.FormatFloat(ratio, 'f', 2, 64))
	}
}

// overCap adds the details of the cap that kept a prediction from asking the model.
func overCap(p *Problem, l *spend.Limit) *Problem {
	p.Meta["scope"], p.Meta["window"], p.Meta["limit"], p.Meta["used"], p.Meta["resets_at"] = l.Scope, l.Window,
		l.Limit, l.Used, l.ResetsAt
	p.retry = strconv.Itoa(max(1, int(time.Until(l.ResetsAt).Seconds())))
	return p
}
