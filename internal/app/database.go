package app

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres"
)

// Names of stores in version reports.
const (
	storeDisk     = "disk"
	storePostgres = "postgres"
)

// StoreOptions configure where data is stored.
type StoreOptions struct {
	// StoreURL is "disk", which is DataDir, or the URL of a PostgreSQL database that replicas share.
	StoreURL string `name:"store" env:"RECURGENT_STORE" value:"disk|URL" help:"where everything is stored: disk is --data-dir; postgres://USER@HOST/NAME is a database that replicas share. A URL with a password goes into the environment or --store-file"`
	// StoreFile is a file that contains the URL, as an alternative to StoreURL.
	StoreFile string `name:"store-file" env:"RECURGENT_STORE_FILE" value:"FILE" default:"none" help:"file that holds the URL, instead of --store; its second line, if there is one, is that of --store-direct"`
	// StoreDirect is a URL of the same database that bypasses a pooler; "" means StoreURL.
	StoreDirect string `name:"store-direct" env:"RECURGENT_STORE_DIRECT" value:"URL" default:"that of --store" help:"URL of the same database past a pooler such as pgbouncer, for migrations, notifications and exports"`

	url, direct string // of the database; set by the first Resolve only, since a pipe can be read once
}

// Database reports whether data is stored in a database.
func (o *StoreOptions) Database() bool { return o.StoreURL != storeDisk || o.StoreFile != "" }

// checkStore checks the options and reads the file, once.
func (o *Options) checkStore() error {
	switch {
	case o.url != "":
		return nil
	case !o.Database() && o.StoreDirect != "":
		return refuse("store-direct", "is set, but --store is not a database")
	case !o.Database():
		return nil
	case o.Durability != durabilityAlways:
		return refuse("durability", "applies to --store disk only; a database has its own setting")
	}
	name, url, direct := "store", o.StoreURL, o.StoreDirect
	if o.StoreFile != "" {
		if url != storeDisk || direct != "" {
			return refuse("store-file", "cannot be combined with --store or --store-direct")
		}
		data, err := readBounded(o.StoreFile)
		if err != nil {
			return refuse("store-file", "%s", err)
		}
		lines := append(strings.Fields(string(data)), "")
		if len(lines) < 2 || len(lines) > 3 {
			return refuse("store-file", "holds %d URLs; one is that of a database, a second one that past its pooler",
				len(lines)-1)
		}
		name, url, direct = "store-file", lines[0], lines[1]
	}
	if !postgresURL(url) {
		// do not quote the URL: it may contain a password
		return refuse(name, "is not a URL such as postgres://USER@HOST/NAME")
	}
	if direct != "" && !postgresURL(direct) {
		return refuse("store-direct", "is not a URL such as postgres://USER@HOST/NAME")
	}
	o.url, o.direct = url, direct
	return nil
}

func postgresURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql")
}

// database returns the options for opening the database.
func (o *Options) database() postgres.Options {
	po := postgres.DefaultOptions(o.url)
	po.Direct = o.direct
	return po
}

// openDatabase opens the database, and makes it the shared store.
func (a *App) openDatabase(ctx context.Context, o Options, p *parts) (store.Store, error) {
	po := o.database()
	po.Logger = a.log
	if o.Now != nil {
		po.Now = o.Now
	}
	s, err := postgres.Open(ctx, po)
	if err != nil {
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}
	a.onStop("the store", s.Close)
	p.shared, p.database = s, s
	return files.Inside(s), nil
}

// storeName returns the name of the store for version reports.
func (o *Options) storeName() string {
	if o.Database() {
		return storePostgres
	}
	return storeDisk
}
