package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/store"
)

// Options configures a Store. Start from DefaultOptions.
type Options struct {
	// URL is the URL of the database: postgres://user@host[,host]/name. It may have the parameters of libpq and of
	// pgxpool (pool_max_conns). pgbouncer=true stands for a pooler in transaction mode, where statements are not
	// prepared by name.
	URL string
	// Direct is the URL of the same database without a pooler, for migrations, notifications and exports. "" means URL.
	Direct string

	// Existing opens only a database that already has the tables of this version, and opening changes nothing in it.
	Existing bool

	Now    func() time.Time // the clock for stored times; required
	Logger zerolog.Logger

	Poll    time.Duration // interval at which the feed is read without a notification; above 0
	Retry   time.Duration // how long a call's commit is retried while the database is away; 0 means no retry
	FeedAge time.Duration // how long changes are kept for readers that come back; above 0

	StoredLag time.Duration // maximum age of cached storage sums; 0 disables the cache
}

// DefaultOptions returns a daemon's options for the database.
func DefaultOptions(url string) Options {
	return Options{URL: url, Now: time.Now, Logger: zerolog.Nop(), Poll: 250 * time.Millisecond,
		Retry: 30 * time.Second, FeedAge: 24 * time.Hour, StoredLag: store.StoredLag}
}

// validate returns an error if an option is invalid. It sets Direct if it is empty.
func (o *Options) validate() error {
	switch {
	case o.URL == "":
		return fmt.Errorf("the URL of the database is missing")
	case o.Now == nil:
		return fmt.Errorf("the clock is missing")
	case o.Poll <= 0 || o.FeedAge <= 0 || o.Retry < 0:
		return fmt.Errorf("poll %s and feed age %s must be above 0, retry %s not below", o.Poll, o.FeedAge, o.Retry)
	}
	if o.Direct == "" {
		o.Direct = o.URL
	}
	return nil
}

// pooled is the URL parameter for a pooler in transaction mode.
const pooled = "pgbouncer"

// pool returns the configuration of the connection pool.
func (o *Options) pool() (*pgxpool.Config, error) { return parse(o.URL) }

// direct returns the configuration of connections without a pooler.
func (o *Options) direct() (*pgx.ConnConfig, error) {
	c, err := parse(o.Direct)
	if err != nil {
		return nil, err
	}
	return c.ConnConfig, nil
}

// parse parses a URL. It removes parameters that the server does not know: ours and those of the pool.
func parse(url string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err == nil && takePooled(c.ConnConfig) {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return c, err
}

// takePooled removes our parameter from a URL's parameters, which the server would otherwise reject, and returns its
// value.
func takePooled(c *pgx.ConnConfig) bool {
	value, is := c.RuntimeParams[pooled]
	delete(c.RuntimeParams, pooled)
	return is && value != "false"
}
