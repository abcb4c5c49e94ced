#!/bin/sh
# Starts one of Trivet's processes.
set -eu

refuse() {
  echo "trivet: configuration: $1" >&2
  exit 78
}

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
role=${1:-gateway}
[ $# -eq 0 ] || shift

case $role in
  gateway | worker)
    [ $# -eq 0 ] || refuse "$role takes no arguments, got: $*"
    exec node --max-old-space-size=256 --max-semi-space-size=8 --heap-growing-percent=60 "$root/dist/programs/$role.js"
    ;;
  connector)
    [ $# -eq 0 ] || refuse "$role takes no arguments, got: $*"
    # The client of Kubernetes takes more than the rest.
    heap=64
    [ -z "${TRIVET_KUBERNETES:-}" ] || heap=128
    export MALLOC_ARENA_MAX=1
    exec node "--max-old-space-size=$heap" --max-semi-space-size=1 --no-opt --v8-pool-size=0 "$root/dist/programs/connector.js"
    ;;
  migrate | demo | doctor | completion | search | tenant | first-run | user | login | token | backend | endpoint | cluster | operation | bulk | queue | storage-host | alert | receiver | silence | view | audit | bucket | access | volume | snapshot | snapshot-session | backup | publication | host | pool | usage | forecast | protection | policy | appliance | rewrap)
    exec node "$root/dist/programs/trivet.js" "$role" "$@"
    ;;
  --version | --help)
    exec node "$root/dist/programs/trivet.js" "$role"
    ;;
  # Says how they are called now.
  operations | changes | restore | prune)
    exec node "$root/dist/programs/trivet.js" "$role" "$@"
    ;;
  *) refuse "unknown command $role; expected gateway, worker, connector, migrate, demo, doctor, completion, search, tenant, first-run, user, login, token, backend, endpoint, cluster, operation, bulk, queue, storage-host, alert, receiver, silence, view, audit, bucket, access, volume, snapshot, snapshot-session, backup, publication, host, pool, usage, forecast, protection, policy, appliance or rewrap" ;;
esac
