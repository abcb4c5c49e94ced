#!/bin/sh
# Starts PostgreSQL's image. Its first start makes the data; it takes any that have a version for whole, so those of a start that
# was interrupted, in which nothing was ever stored, are made anew here. 99-made.sh says when they are whole.
set -eu

mark=/var/lib/postgresql/first-start
if [ -e "$mark" ] && [ ! -s "$mark" ]; then
  [ ! -d "$PGDATA" ] || find "$PGDATA" -mindepth 1 -delete
elif [ ! -s "$PGDATA/PG_VERSION" ]; then
  : > "$mark"
  chown postgres "$mark"
fi
exec docker-entrypoint.sh "$@"
