#!/bin/sh
# Run once by PostgreSQL's image, on an empty data folder: Trivet's three roles and its database. The application role
# can never bypass row security, and the engine role sees operations only (what they may do is set by migrations).
set -eu

secrets=${POSTGRES_SECRETS:?folder}

# psql quotes the passwords, and reads them from its input: no argument list ever holds one.
{
  for role in owner app engine; do
    printf "\\\\set password '%s'\n" "$(cat "$secrets/$role")"
    printf "CREATE ROLE trivet_%s LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'password';\n" "$role"
  done
  printf 'CREATE DATABASE trivet OWNER trivet_owner;\n'
  printf 'REVOKE CONNECT, TEMPORARY ON DATABASE trivet FROM PUBLIC;\n'
  printf 'GRANT CONNECT ON DATABASE trivet TO trivet_app, trivet_engine;\n'
} | psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres
