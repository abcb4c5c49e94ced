#!/bin/sh
# Makes a release of the commit that is checked out: sources, chart, list of packages, API, what changed, and checksums over all.
#
#   deploy/release/make.sh FOLDER [--image] [--tag]
#
# The same commit gives the same bytes, whoever runs it where; the image alone has times in it. --image adds one for the
# architecture of the Docker engine: run it on an engine of each, with one FOLDER each. --tag makes an annotated tag vVERSION that
# holds the checksums, and pushes nothing. FOLDER must not be there yet; after a failure it is not.
set -eu
export LC_ALL=C TZ=UTC

fail() {
  echo "release: $*" >&2
  exit 1
}

folder='' image='' tag=''
for argument in "$@"; do
  case $argument in
    --image) image=yes ;;
    --tag) tag=yes ;;
    -*) fail "unknown option $argument; usage: deploy/release/make.sh FOLDER [--image] [--tag]" ;;
    *) [ -z "$folder" ] || fail "one FOLDER is wanted, not $folder and $argument"; folder=$argument ;;
  esac
done
[ -n "$folder" ] || fail "usage: deploy/release/make.sh FOLDER [--image] [--tag]"
[ ! -e "$folder" ] || fail "$folder is there already"
mkdir -p "$(dirname "$folder")"
folder=$(cd "$(dirname "$folder")" && pwd -P)/$(basename "$folder")

cd "$(dirname "$0")/../.."
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed (git status)"
version=$(node -p 'require("./package.json").version')
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# One release has one number.
says() {
  [ "$2" = "$version" ] || fail "$1 says $2, package.json says $version"
}
says package-lock.json "$(node -p 'require("./package-lock.json").version')"
says 'deploy/helm/trivet/Chart.yaml, version,' "$(sed -n 's/^version: //p' deploy/helm/trivet/Chart.yaml)"
says 'deploy/helm/trivet/Chart.yaml, appVersion,' "$(sed -n 's/^appVersion: //p' deploy/helm/trivet/Chart.yaml)"
says 'deploy/docker/Dockerfile' "$(sed -n 's/.*image\.version="\([^"]*\)".*/\1/p' deploy/docker/Dockerfile)"
heading=$(sed -n '/^## /{p;q;}' CHANGELOG.md)
case $heading in
  "## $version ("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]")") ;;
  *) fail "CHANGELOG.md begins with '$heading', not with '## $version (YYYY-MM-DD)'" ;;
esac
[ -z "$(git tag --list "v$version")" ] || [ "$(git rev-parse "v$version^{commit}")" = "$commit" ] ||
  fail "v$version is another commit already: a release needs a number of its own"

begun=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$begun"' EXIT
trap 'exit 130' INT TERM HUP
name=trivet-$version

# No pipes where something may fail: sh does not tell.
git archive --format=tar --prefix="$name/" --output="$begun/$name.tar" HEAD
gzip -n -9 "$begun/$name.tar"

# Helm takes no links in an archive; it is given what they lead to. Everybody's, by name, as of the commit.
git archive --format=tar --output="$begun/.deploy.tar" HEAD deploy
mkdir "$begun/.chart"
tar --extract --file="$begun/.deploy.tar" --directory="$begun/.chart"
rm -r "$begun/.deploy.tar" "$begun/.chart/deploy/helm/trivet/ci"
tar --create --dereference --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' --format=gnu \
  --file="$begun/.chart.tar" --directory="$begun/.chart/deploy/helm" trivet
gzip -n -9 "$begun/.chart.tar"
mv "$begun/.chart.tar.gz" "$begun/$name-chart.tgz"
rm -r "$begun/.chart"

npm sbom --sbom-format=cyclonedx --omit=dev --package-lock-only >"$begun/.npm.json"
node deploy/docker/sbom.mjs <"$begun/.npm.json" >"$begun/$name.cdx.json"
rm "$begun/.npm.json"
cp docs/openapi.json "$begun/$name-openapi.json"
awk '/^## / { section++; next } section == 1' CHANGELOG.md >"$begun/CHANGES.md"

if [ -n "$image" ]; then
  arch=$(docker version --format '{{.Server.Arch}}') || fail "--image needs a Docker engine"
  docker build --file deploy/docker/Dockerfile --tag "trivet:$version" --build-arg "BUILD_COMMIT=$(git rev-parse --short=12 HEAD)" \
    --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" . >&2
  docker save --output "$begun/$name-image-linux-$arch.tar" "trivet:$version"
  gzip -n "$begun/$name-image-linux-$arch.tar"
fi

(cd "$begun" && sha256sum -- * >SHA256SUMS)
if [ -n "$tag" ]; then
  { printf 'Trivet %s\n\n' "$version"; cat "$begun/SHA256SUMS"; } | git tag --annotate --force --cleanup=verbatim --file=- "v$version" "$commit"
fi
chmod 0755 "$begun"
mv -T "$begun" "$folder"
trap - EXIT
cat "$folder/SHA256SUMS"
