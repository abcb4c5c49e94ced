#!/bin/sh
# Starts PostgreSQL's image, which has its data in a folder of their major version. Its first start makes them; it takes any that have a
# version for whole, so those of a start that was interrupted, in which nothing was ever stored, are made anew here. 99-made.sh says when
# they are whole. What may be whole is never made anew, and nothing is begun beside the data of another version.
set -eu

volume=/var/lib/postgresql
version=${PGDATA%/*}
mark=$version/first-start
# Of all versions together, before 28 November 2026.
former=$volume/first-start

# `up --wait` ends with what is unhealthy, and waits for ever for what is started again and again.
refuse() {
  echo "postgres: $*; no data were changed" >&2
  trap 'exit 1' INT TERM
  sleep 300 &
  wait $!
  exit 1
}

# initdb makes three databases, with smaller numbers: such a one `roles` or somebody has made, whatever a mark says.
is_served() {
  for database in "$1"/base/[0-9][0-9][0-9][0-9][0-9]*; do
    [ ! -d "$database" ] || return 0
  done
  return 1
}

# A release before takes an empty mark for "nothing was ever stored", of whichever version, and deletes: so it must not find one
# beside what was served.
if [ -e "$former" ] && [ ! -s "$former" ]; then
  for version_folder in "$volume"/*/docker; do
    ! is_served "$version_folder" || { echo made > "$former" && sync "$former"; }
  done
fi
if [ -d "$PGDATA" ] && [ -e "$former" ] && [ ! -e "$mark" ]; then mv "$former" "$mark"; fi

if is_served "$PGDATA" || [ -s "$mark" ]; then
  [ -s "$PGDATA/PG_VERSION" ] || refuse "$PGDATA was served, and has no PG_VERSION any more: look at the disk, and restore a backup into a volume that is empty"
elif [ -e "$mark" ] || [ ! -s "$PGDATA/PG_VERSION" ]; then
  for other in "$volume/PG_VERSION" "$volume/data/PG_VERSION" "$volume"/*/docker/PG_VERSION; do
    if [ "$other" != "$PGDATA/PG_VERSION" ] && [ -s "$other" ]; then
      refuse "the volume has data of PostgreSQL $(cat "$other"), which ${PG_MAJOR:-this version} cannot read: deploy/README.md, \"Another major version of PostgreSQL\", says how they are taken over"
    fi
  done
  if [ -e "$mark" ]; then
    [ ! -d "$PGDATA" ] || find "$PGDATA" -mindepth 1 -delete
  elif [ -n "$(ls -A "$PGDATA" 2>/dev/null)" ]; then
    refuse "$PGDATA is not empty, and has no PG_VERSION"
  fi
  mkdir -p "$version"
  : > "$mark"
  chown postgres "$mark"
fi
[ ! -e "$mark" ] || rm -f "$former"
exec docker-entrypoint.sh "$@"
