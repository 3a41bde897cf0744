package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/store"
)

// Join implements store.Store.
func (s *Store) Join(ctx context.Context, r store.Replica, ttl time.Duration) error {
	return s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var alive bool
		err := tx.QueryRow(ctx, "SELECT expires_at > clock_timestamp() FROM replicas WHERE id = $1 FOR UPDATE",
			key(r.ID)).Scan(&alive)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if alive {
			return store.ErrExists
		}
		if err := freeSessions(ctx, tx, r.ID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM replicas WHERE id = $1", key(r.ID)); err != nil {
			return err
		}
		// If two replicas join with the same id at once, one insert fails and its transaction is retried.
		_, err = tx.Exec(ctx, `INSERT INTO replicas (id, started_at, expires_at, doc) SELECT $1, t, t + $2 * interval '1 microsecond', $3 FROM clock_timestamp() AS t`,
			key(r.ID), ttl.Microseconds(), replicaDoc(r))
		return err
	})
}

// replicaDoc encodes what a replica reports about itself.
func replicaDoc(r store.Replica) []byte {
	doc, _ := json.Marshal(&r) // it has only strings and numbers
	return doc
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, r store.Replica, ttl time.Duration) error {
	return s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE replicas SET expires_at = clock_timestamp() + $2 * interval '1 microsecond', doc = $3
			WHERE id = $1 AND expires_at > clock_timestamp()`, key(r.ID), ttl.Microseconds(), replicaDoc(r))
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrFenced
		}
		return err
	})
}

// Leave implements store.Store.
func (s *Store) Leave(ctx context.Context, id string) error {
	return s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM replicas WHERE id = $1", key(id)); err != nil {
			return err
		}
		// The replica's sessions, leases and chunks of caps are free at once.
		if err := freeSessions(ctx, tx, id); err != nil || id == "" {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM leases WHERE holder = $1", key(id)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM spend_chunks c USING (SELECT ns, cap FROM spend_chunks WHERE replica = $1 ORDER BY ns, cap FOR UPDATE) AS k
			WHERE c.ns = k.ns AND c.cap = k.cap AND c.replica = $1`, key(id))
		return err
	})
}

// nextEpoch is an epoch above that of the session s, made of the time and random bits. It must not come from a
// sequence, which repeats numbers that were lost with a primary: then two owners would have the same epoch. Earlier
// versions used the sequence epochs.
const nextEpoch = "greatest(s.epoch + 1, " + firstEpoch + ")"

// firstEpoch is the epoch of a new session.
const firstEpoch = "((extract(epoch FROM clock_timestamp()) * 1000000)::int8 << 10) + floor(random() * 1024)::int8"

// freeSessions releases the replica's sessions. It locks rows in the same order as commits do.
func freeSessions(ctx context.Context, tx pgx.Tx, replica string) error {
	_, err := tx.Exec(ctx, `UPDATE sessions s SET replica = NULL, epoch = `+nextEpoch+`
		FROM (SELECT ns, id FROM sessions WHERE replica = $1 ORDER BY ns, id FOR UPDATE) AS k WHERE (s.ns, s.id) = (k.ns, k.id)`, key(replica))
	return err
}

// ListReplicas implements store.Store.
func (s *Store) ListReplicas(ctx context.Context) (out []store.Replica, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx,
			"SELECT started_at, expires_at, doc FROM replicas WHERE expires_at > clock_timestamp() ORDER BY id")
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r store.Replica, err error) {
			var started, expires time.Time
			var doc []byte
			if err := row.Scan(&started, &expires, &doc); err != nil {
				return r, err
			}
			r, err = decodeReplica(doc, started)
			r.ExpiresAt = expires.UTC()
			return r, err
		})
		return err
	})
	return out, err
}

// Own implements store.Namespace. Usually a live replica owns the session; then Own takes no lock.
func (n *Namespace) Own(ctx context.Context, sessionID, replica string) (o store.Ownership, err error) {
	if o, err = n.owner(ctx, sessionID, replica); err != nil || o != (store.Ownership{}) {
		return o, err
	}
	// Under lock from here on, because several replicas may want the session.
	err = n.store.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		ns, err := n.key(ctx)
		if err != nil {
			return err
		}
		var owner *string
		if err := tx.QueryRow(ctx, "SELECT replica, epoch FROM sessions WHERE ns = $1 AND id = $2 FOR UPDATE", ns,
			key(sessionID)).Scan(&owner, &o.Epoch); err != nil {
			return err
		}
		self, alive, err := readReplica(ctx, tx, key(replica))
		if err != nil {
			return err
		}
		if !alive {
			return store.ErrFenced
		}
		if owner != nil {
			other, alive, err := readReplica(ctx, tx, *owner)
			if o.Replica, o.Address = other.ID, other.Address; err != nil || alive && !other.YieldsTo(&self) {
				return err
			}
		}
		o.Replica, o.Address = self.ID, self.Address
		return tx.QueryRow(ctx, "UPDATE sessions s SET replica = $3, epoch = "+nextEpoch+
			" WHERE ns = $1 AND id = $2 RETURNING epoch", ns, key(sessionID), key(replica)).Scan(&o.Epoch)
	})
	if err != nil {
		return store.Ownership{}, err
	}
	// Otherwise the next commit would compare with the old epoch and read the row again.
	k := rowKey{ns: n.id.Load(), a: key(sessionID)}
	if s, ok := n.store.keptSessions.GetIfPresent(k); ok {
		s.epoch = o.Epoch
		n.store.keptSessions.Set(k, s)
	}
	return o, nil
}

// owner returns the owner of a session, as seen by the live replica asks. It returns the zero value if the session is
// free or its owner yields to asks.
func (n *Namespace) owner(ctx context.Context, sessionID, asks string) (o store.Ownership, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		var epoch int64
		var doc []byte
		var began, since *time.Time
		if err := n.store.pool.QueryRow(ctx,
			`SELECT s.epoch, r.doc, r.started_at, me.started_at FROM sessions s LEFT JOIN replicas r ON r.id = s.replica AND r.expires_at > clock_timestamp()
			LEFT JOIN replicas me ON me.id = $3 AND me.expires_at > clock_timestamp() WHERE s.ns = $1 AND s.id = $2`, ns, key(sessionID), key(asks)).Scan(&epoch, &doc, &began, &since); err != nil || began == nil || since == nil {
			return err
		}
		r, err := decodeReplica(doc, *began)
		if err != nil || r.YieldsTo(&store.Replica{StartedAt: *since}) {
			return err
		}
		o = store.Ownership{Replica: r.ID, Address: r.Address, Epoch: epoch}
		return nil
	})
	return o, err
}

// readReplica returns a replica and whether it is alive. It locks the row, so the replica cannot renew itself while its
// sessions are taken.
func readReplica(ctx context.Context, tx pgx.Tx, id string) (r store.Replica, alive bool, err error) {
	var doc []byte
	var started time.Time
	err = tx.QueryRow(ctx, "SELECT doc, started_at, expires_at > clock_timestamp() FROM replicas WHERE id = $1 FOR SHARE", id).Scan(&doc, &started, &alive)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	r, err = decodeReplica(doc, started)
	return r, alive && err == nil, err
}

func decodeReplica(doc []byte, started time.Time) (r store.Replica, err error) {
	if err := json.Unmarshal(doc, &r); err != nil {
		return r, fmt.Errorf("stored replica: %w", err)
	}
	r.StartedAt = started.UTC()
	return r, nil
}

// Disown implements store.Namespace. It locks rows in the same order as commits do.
func (n *Namespace) Disown(ctx context.Context, owned map[string]store.Ownership) error {
	ids, replicas, epochs := make([]string, 0, len(owned)), make([]string, 0, len(owned)), make([]int64, 0, len(owned))
	for id, o := range owned {
		ids, replicas, epochs = append(ids, key(id)), append(replicas, key(o.Replica)), append(epochs, o.Epoch)
	}
	return n.store.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		ns, err := n.key(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE sessions s SET replica = NULL, epoch = `+nextEpoch+`
			FROM (SELECT s.ns, s.id FROM sessions s JOIN unnest($2::text[], $3::text[], $4::int8[]) AS o (id, replica, epoch) USING (id, replica, epoch)
				WHERE s.ns = $1 ORDER BY s.ns, s.id FOR UPDATE OF s) AS k WHERE (s.ns, s.id) = (k.ns, k.id)`, ns, ids, replicas, epochs)
		return err
	})
}
