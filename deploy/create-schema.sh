#!/bin/sh
# Creates Temporal's two databases, or brings them to this version's schema. May run again.
set -eu

versioned=${SCHEMA:-/etc/temporal/schema}/postgresql/v12

sql_tool() {
    temporal-sql-tool --plugin postgres12 --ep "$SQL_HOST" -p "$SQL_PORT" -u "$SQL_USER" "$@"
}

prepare() {
    sql_tool --db "$1" create
    sql_tool --db "$1" setup-schema -v 0.0
    sql_tool --db "$1" update-schema -d "$versioned/$2/versioned"
}

prepare temporal temporal
prepare temporal_visibility visibility
