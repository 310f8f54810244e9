#!/bin/sh
# What upstream's start-up does with the variables that the compose file sets.
set -eu
if [ "$(id -u)" = 0 ]; then
    chown postgres "$PGDATA" /var/run/postgresql
    chmod 700 "$PGDATA"
    exec setpriv --reuid postgres --regid postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    echo "$POSTGRES_PASSWORD" | initdb --username "$POSTGRES_USER" --pwfile /dev/stdin --auth-local trust --auth-host scram-sha-256
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
    echo "CREATE DATABASE $POSTGRES_USER;" | postgres --single -D "$PGDATA" postgres
fi
exec "$@"
