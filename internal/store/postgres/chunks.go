package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A replica keeps a chunk of each cap that its requests count for, so that it need not sum up for each request what all have used. A reservation is
// taken from its chunks in the transaction that keeps it: chunks are rows of the database alone. So another replica that lacks may take them at any
// time, and a stopped one that goes on finds that it has none. Near the cap, chunks are what is asked for and no more.

// chunk is a replica's part of a cap.
type chunk struct {
	cap  store.Cap
	ns   int64 // none for a cap of all namespaces
	name string
	at   int // its place among the request's caps
}

// chunksOf returns the chunks that a reservation needs, in the order in which their rows are locked.
func chunksOf(ns int64, caps []store.Cap) []chunk {
	out := make([]chunk, len(caps))
	for i, c := range caps {
		k := chunk{c, ns, fmt.Sprintf("%s:%d:%d", c.Scope, c.First, c.Last), i}
		switch c.Scope {
		case store.ScopeDaemon:
			k.ns = none
		case store.ScopeMethod:
			k.name += ":" + rowHash(c.Role, c.Method, "")
		case store.ScopeOwner:
			k.name += ":" + rowHash("", "", c.Owner)
		}
		out[i] = k
	}
	slices.SortFunc(out, func(a, b chunk) int { return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.name, b.name)) })
	return out
}

// errShort is the end of a transaction that found too little in the replica's chunks.
var errShort = errors.New("the replica's chunks of caps are used up")

// ReserveWithin is part of store.Namespace. Where a broken connection leaves open whether the reservation was kept, the next try looks.
func (n *Namespace) ReserveWithin(ctx context.Context, s agent.Spend, replica string, caps []store.Cap) error {
	within := func(from func(c *change, ctx context.Context, s *agent.Spend, replica string,
		chunks []chunk) error) error {
		tried := false
		return n.repeat(ctx, func(ctx context.Context, c *change) error {
			if tried {
				if kept, err := c.isOpen(ctx, s.ID); err != nil || kept {
					return err
				}
			}
			tried = true
			return from(c, ctx, &s, replica, chunksOf(c.ns, caps))
		})
	}
	err := within((*change).fromChunks)
	if errors.Is(err, errShort) {
		err = within((*change).fromCaps)
	}
	return err
}

// isOpen reports whether there is a reservation of that id.
func (c *change) isOpen(ctx context.Context, id string) (open bool, err error) {
	err = c.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM spend_open WHERE ns = $1 AND id = $2)", c.ns,
		key(id)).Scan(&open)
	return open, err
}

// These are how the rows of chunks are named: $1 and $2 are their namespaces and names.
const theChunks = "(ns, cap) IN (SELECT * FROM unnest($1::int8[], $2::text[]))"

func rowsOf(chunks []chunk) (ns []int64, names []string, limits []int64) {
	for _, k := range chunks {
		ns, names, limits = append(ns, k.ns), append(names, k.name), append(limits, k.cap.Limit)
	}
	return ns, names, limits
}

// fromChunks takes a reservation from what the replica has, and keeps it.
func (c *change) fromChunks(ctx context.Context, s *agent.Spend, replica string, chunks []chunk) error {
	ns, names, limits := rowsOf(chunks)
	tag, err := c.Exec(ctx, `WITH mine AS (SELECT k.ns, k.cap FROM spend_chunks k JOIN unnest($1::int8[], $2::text[], $3::int8[]) AS w (ns, cap, most) USING (ns, cap, most)
		WHERE k.replica = $4 AND k.tokens >= $5 ORDER BY k.ns, k.cap FOR UPDATE OF k)
		UPDATE spend_chunks k SET tokens = k.tokens - $5 FROM mine WHERE k.ns = mine.ns AND k.cap = mine.cap AND k.replica = $4`, ns, names, limits, key(replica), s.Sum())
	if err != nil {
		return err
	}
	if tag.RowsAffected() < int64(len(chunks)) {
		return errShort
	}
	return c.keepOpen(ctx, s)
}

func (c *change) keepOpen(ctx context.Context, s *agent.Spend) error {
	b := &pgx.Batch{}
	if err := queueOpen(b, c.ns, s); err != nil {
		return err
	}
	return c.send(ctx, b)
}

// fromCaps sums up what is left of the caps, takes new chunks for the replica and a reservation from them. One replica at a time does so for a cap.
func (c *change) fromCaps(ctx context.Context, s *agent.Spend, replica string, chunks []chunk) error {
	others, err := c.lockChunks(ctx, replica, chunks)
	if err != nil {
		return err
	}
	var replicas int64
	if err := c.QueryRow(ctx,
		"SELECT greatest(count(*), 1) FROM replicas WHERE expires_at > clock_timestamp()").Scan(&replicas); err != nil {
		return err
	}
	caps := make([]store.Cap, len(chunks))
	for _, k := range chunks {
		caps[k.at] = k.cap
	}
	uses, err := useOf(ctx, c, c.ns, caps)
	if err != nil {
		return err
	}
	if err := store.RoomFor(s.Sum(), caps, uses); err != nil {
		return err
	}
	b := &pgx.Batch{}
	for _, k := range chunks {
		theirs := others[k.at]
		left := k.cap.Limit - uses[k.at].Used - uses[k.at].Reserved // also what replicas hold
		if left-theirs < s.Sum() {                                  // they get new ones, if there is more to be had
			b.Queue("DELETE FROM spend_chunks WHERE ns = $1 AND cap = $2 AND replica <> $3", k.ns, k.name, key(replica))
			theirs = 0
		}
		mine := max(s.Sum(), min(left-theirs, left/replicas))
		b.Queue(`INSERT INTO spend_chunks (ns, cap, replica, most, tokens, last) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (ns, cap, replica) DO UPDATE SET most = excluded.most, tokens = excluded.tokens`, k.ns, k.name, key(replica), k.cap.Limit, mine-s.Sum(), int32(k.cap.Last))
	}
	if err := queueOpen(b, c.ns, s); err != nil {
		return err
	}
	return c.send(ctx, b)
}

// lockChunks keeps the chunks of the caps, of all replicas, as they are until the transaction ends. Those of dead replicas go. It returns what the
// others hold, by the caps' places.
func (c *change) lockChunks(ctx context.Context, replica string, chunks []chunk) ([]int64, error) {
	ns, names, _ := rowsOf(chunks)
	locks := make([]int32, len(chunks))
	for i, k := range chunks {
		sum := fnv.New32a()
		_, _ = fmt.Fprintf(sum, "%d:%s", k.ns, k.name)
		locks[i] = int32(sum.Sum32()) //nolint:gosec // any of them will do
	}
	slices.Sort(locks)
	for _, l := range slices.Compact(locks) {
		if _, err := c.Exec(ctx, "SELECT pg_advisory_xact_lock("+capLocks+", $1)", l); err != nil {
			return nil, err
		}
	}
	rows, err := c.Query(ctx, "SELECT ns, cap, replica, tokens FROM spend_chunks WHERE "+theChunks+
		" ORDER BY ns, cap, replica FOR UPDATE", ns, names)
	if err != nil {
		return nil, err
	}
	type row struct {
		NS           int64
		Cap, Replica string
		Tokens       int64
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return nil, err
	}
	dead, err := c.dropDead(ctx, ns, names)
	if err != nil {
		return nil, err
	}
	others := make([]int64, len(chunks))
	for _, r := range all {
		i := slices.IndexFunc(chunks, func(k chunk) bool { return k.ns == r.NS && k.name == r.Cap })
		if r.Replica != key(replica) && !slices.Contains(dead, r.Replica) {
			others[chunks[i].at] += r.Tokens
		}
	}
	return others, nil
}

// dropDead drops the chunks of the caps whose replicas are dead, and returns these.
func (c *change) dropDead(ctx context.Context, ns []int64, names []string) ([]string, error) {
	rows, err := c.Query(ctx, "DELETE FROM spend_chunks k WHERE "+theChunks+
		` AND NOT EXISTS (SELECT 1 FROM replicas r WHERE r.id = k.replica AND r.expires_at > clock_timestamp())
		RETURNING k.replica`, ns, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// capLocks is the first key of the advisory locks of caps, which a transaction takes in order.
const capLocks = "1380271957"
