#!/bin/sh
# Starts one of Trivet's processes. Settings that exist for tests stop it with the code of a wrong configuration.
set -eu

refuse() {
  echo "trivet: configuration: $1" >&2
  exit 78
}

[ "${TRIVET_FAILPOINTS:-0}" != 1 ] || refuse 'TRIVET_FAILPOINTS: failpoints kill processes; they are not for this image'
[ -z "${TRIVET_FAILPOINT:-}" ] || refuse 'TRIVET_FAILPOINT: failpoints kill processes; they are not for this image'
[ -z "${TRIVET_FAKE_BACKEND_FILE:-}" ] || refuse 'TRIVET_FAKE_BACKEND_FILE: the fake backend stores nothing; it is not for this image'
[ -z "${TRIVET_FAKE_BLOCK_FILE:-}" ] || refuse 'TRIVET_FAKE_BLOCK_FILE: the fake of block volumes exports nothing; it is not for this image'

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
role=${1:-gateway}
[ $# -eq 0 ] || shift

case $role in
  gateway | worker)
    [ $# -eq 0 ] || refuse "$role takes no arguments, got: $*"
    exec node --max-old-space-size=256 --max-semi-space-size=8 --heap-growing-percent=60 "$root/dist/apps/$role/src/main.js"
    ;;
  migrate | doctor | tenant | user | token | backend | endpoint | queue | audit | bucket | volume | host | pool | protection | policy | operations | operation | rewrap | changes | backup | restore | prune)
    exec node "$root/dist/apps/cli/src/main.js" "$role" "$@"
    ;;
  *) refuse "unknown command $role; expected gateway, worker, migrate, doctor, tenant, user, token, backend, endpoint, queue, audit, bucket, volume, host, pool, protection, policy, operations, operation, rewrap, changes, backup, restore or prune" ;;
esac
