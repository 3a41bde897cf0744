package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// rower queries a single row.
type rower interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readPolicy reads a namespace's policy on top of the defaults, so a policy from an older version has values for newer
// fields. lock is a locking clause or "".
func readPolicy(ctx context.Context, q rower, ns int64, lock string) (p agent.Policy, revision int64, err error) {
	var doc []byte
	err = q.QueryRow(ctx, "SELECT revision, doc FROM policies WHERE ns = $1 "+lock, ns).Scan(&revision, &doc)
	if errors.Is(err, pgx.ErrNoRows) {
		return agent.DefaultPolicy(), 0, nil
	}
	if err != nil {
		return agent.DefaultPolicy(), 0, err
	}
	p, err = decodePolicy(doc)
	return p, revision, err
}

// decodePolicy decodes a policy on top of the defaults and upgrades it to the current version.
func decodePolicy(doc []byte) (agent.Policy, error) {
	p := agent.DefaultPolicy()
	p.RedactVersion = 0 // older versions did not store it
	if err := json.Unmarshal(doc, &p); err != nil {
		return p, err
	}
	p.Upgrade()
	return p, p.Validate()
}

// Policy implements store.Namespace.
func (n *Namespace) Policy(ctx context.Context) (p agent.Policy, revision int64, err error) {
	p = agent.DefaultPolicy()
	err = n.read(ctx, func(ctx context.Context, ns int64) (err error) {
		p, revision, err = readPolicy(ctx, n.store.pool, ns, "")
		return err
	})
	return p, revision, err
}

// SetPolicy implements store.Namespace.
func (n *Namespace) SetPolicy(ctx context.Context, p agent.Policy, revision int64, audit *agent.AuditEntry) error {
	doc, err := json.Marshal(&p)
	if err != nil {
		return err
	}
	return n.change(ctx, func(ctx context.Context, c *change) error {
		_, have, err := readPolicy(ctx, c, c.ns, "FOR UPDATE")
		if err != nil && have == 0 {
			return err
		}
		if !store.Matches(revision, have) {
			return store.ErrConflict
		}
		tag, err := c.Exec(ctx, `INSERT INTO policies AS p (ns, revision, doc) VALUES ($1, $2 + 1, $3)
			ON CONFLICT (ns) DO UPDATE SET revision = excluded.revision, doc = excluded.doc WHERE p.revision = $2`, c.ns, have, doc)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 { // another transaction inserted the row meanwhile
			return store.ErrConflict
		}
		c.Changed(store.Change{Kind: "policy", Revision: have + 1})
		return c.audit(ctx, audit)
	})
}
