package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A replica holds a chunk of each cap that its requests count against, so it need not sum up everybody's use for each
// request. A reservation is taken from the replica's chunks in the transaction that stores it. Chunks exist only as
// rows in the database: a replica that runs out may take those of others at any time, and a replica that was paused
// finds its own gone. Near the cap, a chunk is only as large as the request.

// chunk is a replica's part of a cap.
type chunk struct {
	cap  store.Cap
	ns   int64 // none for a cap of all namespaces
	name string
	at   int // index among the request's caps
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

// errShort means that the replica's chunks do not have enough tokens.
var errShort = errors.New("the replica's chunks of caps are used up")

// ReserveWithin implements store.Namespace. If a broken connection leaves open whether the reservation was stored, the
// next attempt checks first.
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

// isOpen reports whether a reservation with that id exists.
func (c *change) isOpen(ctx context.Context, id string) (open bool, err error) {
	err = c.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM spend_open WHERE ns = $1 AND id = $2)", c.ns,
		key(id)).Scan(&open)
	return open, err
}

// theChunks selects the rows of chunks: $1 and $2 are their namespaces and names.
const theChunks = "(ns, cap) IN (SELECT * FROM unnest($1::int8[], $2::text[]))"

// rowsOf returns the namespaces, names and limits of the chunks as columns, for theChunks.
func rowsOf(chunks []chunk) (ns []int64, names []string, limits []int64) {
	for _, k := range chunks {
		ns, names, limits = append(ns, k.ns), append(names, k.name), append(limits, k.cap.Limit)
	}
	return ns, names, limits
}

// fromChunks takes a reservation from the replica's chunks and stores it. It returns errShort if any of them is too
// small or was made for another limit.
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

// keepOpen stores the reservation.
func (c *change) keepOpen(ctx context.Context, s *agent.Spend) error {
	b := &pgx.Batch{}
	if err := queueOpen(b, c.ns, s); err != nil {
		return err
	}
	return c.send(ctx, b)
}

// fromCaps computes what is left of the caps, takes new chunks for the replica and the reservation from them. Only one
// replica at a time does so for a cap.
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
		left := k.cap.Limit - uses[k.at].Used - uses[k.at].Reserved // includes what replicas hold
		// take the others' chunks; they get new ones if anything is left
		if left-theirs < s.Sum() {
			b.Queue("DELETE FROM spend_chunks WHERE ns = $1 AND cap = $2 AND replica <> $3", k.ns, k.name, key(replica))
			theirs = 0
		}
		// An equal share for each live replica, but at least the request and at most what nobody else holds.
		mine := max(s.Sum(), min(left-theirs, left/replicas))
		b.Queue(`INSERT INTO spend_chunks (ns, cap, replica, most, tokens, last) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (ns, cap, replica) DO UPDATE SET most = excluded.most, tokens = excluded.tokens`, k.ns, k.name, key(replica), k.cap.Limit, mine-s.Sum(), int32(k.cap.Last))
	}
	if err := queueOpen(b, c.ns, s); err != nil {
		return err
	}
	return c.send(ctx, b)
}

// lockChunks locks the caps' chunks of all replicas until the end of the transaction, and drops those of dead replicas.
// It returns the tokens that other replicas hold, by the index of the cap.
func (c *change) lockChunks(ctx context.Context, replica string, chunks []chunk) ([]int64, error) {
	ns, names, _ := rowsOf(chunks)
	locks := make([]int32, len(chunks))
	for i, k := range chunks {
		sum := fnv.New32a()
		_, _ = fmt.Fprintf(sum, "%d:%s", k.ns, k.name)
		locks[i] = int32(sum.Sum32()) // any of them will do
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

// dropDead drops the caps' chunks of dead replicas, and returns these replicas.
func (c *change) dropDead(ctx context.Context, ns []int64, names []string) ([]string, error) {
	rows, err := c.Query(ctx, "DELETE FROM spend_chunks k WHERE "+theChunks+
		` AND NOT EXISTS (SELECT 1 FROM replicas r WHERE r.id = k.replica AND r.expires_at > clock_timestamp())
		RETURNING k.replica`, ns, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// capLocks is the first key of the advisory locks of caps. A transaction takes these locks in sorted order.
const capLocks = "1380271957"

// longestKey is the maximum length of a key column in bytes. PostgreSQL rejects index entries of 2,704 bytes and more.
const longestKey = 800

// key returns the text that represents s in a column. It is s itself, or a digest if PostgreSQL cannot store s (U+0000,
// invalid UTF-8) or s is too long for an index. The original text is in the document of the row.
func key(s string) string {
	if len(s) <= longestKey && utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.HasPrefix(s, odd) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return odd + hex.EncodeToString(sum[:])
}

const odd = "\x01" // prefix of digests

// keys applies key to each text.
func keys(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = key(s)
	}
	return out
}

// stamp returns the time of a stored timestamp, or nil if the text is not a timestamp. nil lies in no bounded range.
func stamp(text string) *time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return nil
	}
	return &t
}
