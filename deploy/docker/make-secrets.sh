#!/bin/sh
# Makes what the containers need to trust each other, once: passwords, database addresses and the key-encryption key.
# Runs as root, because each file belongs to the one user that reads it. What exists is never replaced.
#   TRIVET_SECRETS    for Trivet's own processes (uid 10001)
#   POSTGRES_SECRETS  for PostgreSQL's (uid 999 in its Debian image)
# Keep a copy of TRIVET_SECRETS/kek elsewhere: without it no stored credential can be opened again.
set -eu
umask 077

trivet=${TRIVET_SECRETS:?folder}
postgres=${POSTGRES_SECRETS:?folder}
host=${POSTGRES_HOST:-postgres:5432}

password() {
  od -An -tx1 -N24 /dev/urandom | tr -d ' \n'
}

# make FILE OWNER CONTENT: written whole or not at all, also where the power fails.
make() {
  [ ! -s "$1" ] || return 0
  printf '%s\n' "$3" > "$1.new"
  chown "$2" "$1.new"
  chmod 0400 "$1.new"
  sync "$1.new"
  mv "$1.new" "$1"
}

mkdir -p "$trivet" "$postgres"
chown 10001:10001 "$trivet"
chown 999:999 "$postgres"
chmod 0500 "$trivet" "$postgres"

make "$trivet/kek" 10001:10001 "$(head -c 32 /dev/urandom | base64)"
make "$trivet/csp-password" 10001:10001 "$(password)"
make "$trivet/admin-password" 10001:10001 "$(password)"
make "$postgres/superuser" 999:999 "$(password)"
for role in owner app engine; do
  make "$postgres/$role" 999:999 "$(password)"
  make "$trivet/database-$role-url" 10001:10001 "postgresql://trivet_$role:$(cat "$postgres/$role")@$host/trivet"
done
