#!/bin/sh
# Copies the primary where the directory is empty, and follows it.
set -eu
PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
export PGPASSWORD
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	until pg_isready --quiet --host "$PRIMARY"; do sleep 1; done
	find "$PGDATA" -mindepth 1 -delete # what an interrupted copy left
	pg_basebackup --pgdata "$PGDATA" --write-recovery-conf --wal-method stream --checkpoint fast \
		--dbname "host=$PRIMARY user=$POSTGRES_USER password=$PGPASSWORD application_name=standby"
	chmod 0700 "$PGDATA"
	# A promoted copy must not wait for a standby that it does not have.
	sed -i '/^synchronous_standby_names/d' "$PGDATA/postgresql.auto.conf"
fi
exec postgres
