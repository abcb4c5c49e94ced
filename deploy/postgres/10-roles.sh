#!/bin/sh
# Trivet's three roles and its database, as a superuser; may be run again at any time, and finishes what was begun. The
# application role can never bypass row security, and the engine role sees operations only (what they may do is set by
# migrations). Ends with 0 when all three can log in.
set -eu

secrets=${POSTGRES_SECRETS:?folder}
export PGHOST="${PGHOST:-127.0.0.1}"

# as USER DATABASE: psql, which reads from its input: no argument list ever holds a password.
as() {
  user=$1 file=$2 database=$3
  PGPASSWORD=$(cat "$secrets/$file") psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$user" --dbname "$database"
}

# psql quotes the passwords.
{
  for role in owner app engine; do
    printf "\\\\set password '%s'\n" "$(cat "$secrets/$role")"
    printf "SELECT count(*) = 0 AS absent FROM pg_roles WHERE rolname = 'trivet_%s' \\\\gset\n\\\\if :absent\n" "$role"
    printf "CREATE ROLE trivet_%s LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'password';\n" "$role"
    printf "\\\\else\nALTER ROLE trivet_%s PASSWORD :'password';\n\\\\endif\n" "$role"
  done
  printf "SELECT count(*) = 0 AS absent FROM pg_database WHERE datname = 'trivet' \\\\gset\n\\\\if :absent\n"
  printf 'CREATE DATABASE trivet OWNER trivet_owner;\n'
  printf '\\endif\n'
  printf 'REVOKE CONNECT, TEMPORARY ON DATABASE trivet FROM PUBLIC;\n'
  printf 'GRANT CONNECT ON DATABASE trivet TO trivet_app, trivet_engine;\n'
} | as "${POSTGRES_USER:-postgres}" superuser postgres

for role in owner app engine; do
  echo 'SELECT;' | as "trivet_$role" "$role" trivet > /dev/null
done
