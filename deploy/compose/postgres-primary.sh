#!/bin/sh
# Runs once, when the primary's directory is made: lets the standby in, and has commits wait for it from the next start on.
set -eu
echo "host replication $POSTGRES_USER samenet scram-sha-256" >>"$PGDATA/pg_hba.conf"
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
ALTER SYSTEM SET synchronous_standby_names = 'standby';
ALTER SYSTEM SET wal_keep_size = '1GB';
SQL
