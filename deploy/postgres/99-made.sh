#!/bin/sh
# The last that PostgreSQL's image does to new data before it serves them: from now on no start makes them anew.
set -eu

mark=${PGDATA%/*}/first-start
echo made > "$mark"
sync "$mark"
