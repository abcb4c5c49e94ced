#!/bin/bash
# What the entry point of the real image does with the settings of docker-compose.yml, step by step in its order.
set -Eeuo pipefail

if [ "$1" = postgres ] && [ "$(id -u)" = 0 ]; then
  install -d -o postgres -m 0700 "$PGDATA"
  chown -R postgres:postgres "$PGDATA" "${PGDATA%/*}"
  exec setpriv --reuid postgres --regid postgres --init-groups "$BASH_SOURCE" "$@"
fi
if [ "$1" != postgres ] || [ -s "$PGDATA/PG_VERSION" ]; then exec "$@"; fi

password=$(cat "$POSTGRES_PASSWORD_FILE")
# shellcheck disable=SC2086
initdb --username postgres --pwfile <(printf '%s\n' "$password") --auth-local trust $POSTGRES_INITDB_ARGS
printf '\nhost all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
PGUSER=postgres pg_ctl --pgdata "$PGDATA" --options "-c listen_addresses=''" --wait start
for script in /docker-entrypoint-initdb.d/*; do
  if [ -x "$script" ]; then "$script"; elif [ -f "$script" ]; then . "$script"; fi
done
pg_ctl --pgdata "$PGDATA" --mode fast --wait stop
exec "$@"
