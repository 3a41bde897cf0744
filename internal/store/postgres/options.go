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
	// URL is the database's: postgres://user@host[,host]/name. It may have the parameters of libpq, those of pgxpool (pool_max_conns),
	// and pgbouncer=true for a pooler in transaction mode, where no statement is prepared under a name.
	URL string
	// Direct is the URL of the same database without a pooler, for migrations, notifications and exports; "" is URL.
	Direct string

	// Existing opens a database only if it has the tables of this version already, and changes nothing to open it.
	Existing bool

	Now    func() time.Time // the clock of what is stored; required
	Logger zerolog.Logger

	Poll    time.Duration // how often the feed is read without a notification; above 0
	Retry   time.Duration // how long a call's commit is repeated while the database is away; 0 for once
	FeedAge time.Duration // how long changes are kept for readers that come back; above 0

	StoredLag time.Duration // how old what is known of stored bytes may be; 0: it is asked for each time
}

// DefaultOptions returns the options of a daemon for the database.
func DefaultOptions(url string) Options {
	return Options{URL: url, Now: time.Now, Logger: zerolog.Nop(), Poll: 250 * time.Millisecond,
		Retry: 30 * time.Second, FeedAge: 24 * time.Hour, StoredLag: store.StoredLag}
}

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

// pooled marks a URL of a pooler in transaction mode.
const pooled = "pgbouncer"

// pool returns the configuration of the pool.
func (o *Options) pool() (*pgxpool.Config, error) { return parse(o.URL) }

// direct returns the configuration of connections that are kept.
func (o *Options) direct() (*pgx.ConnConfig, error) {
	c, err := parse(o.Direct)
	if err != nil {
		return nil, err
	}
	return c.ConnConfig, nil
}

// parse reads a URL. Of its parameters the server would refuse ours and those of the pool, which are taken out.
func parse(url string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err == nil && takePooled(c.ConnConfig) {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return c, err
}

// takePooled takes our parameter out of a URL's, which the server would refuse.
func takePooled(c *pgx.ConnConfig) bool {
	value, is := c.RuntimeParams[pooled]
	delete(c.RuntimeParams, pooled)
	return is && value != "false"
}
