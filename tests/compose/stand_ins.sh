#!/bin/sh
# Makes stand-ins for the images that the compose file takes from a registry, and tags them with upstream's names.
#   stand_ins.sh ENGINE FOLDER     ENGINE is docker or podman; FOLDER is empty and gets about 700 MB
# Debian's packages give Python and PostgreSQL, Go modules Temporal's server, its schema tool and its Web UI: in the
# versions that the pinned `temporal` program consists of. Needs root, debootstrap and Go.
set -eu

engine=$1
folder=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
base=localhost/supervisor-stand-in:base
cli=github.com/temporalio/cli
version=v$(sed -n 's/^VERSION = "\([^"]*\)".*/\1/p' temporal_supervisor/runtime/server/temporal_binary.py)
mirror=$(apt-get indextargets --format '$(SITE)' | head -1)
packages=ca-certificates,python3,python3-venv,python3-pip,postgresql,netcat-openbsd

program() {  # NAME PACKAGE
    (cd "$folder/go" && GOFLAGS=-mod=mod go build -o "$folder/$1" "$2")
}

module() {
    (cd "$folder/go" && GOFLAGS=-mod=mod go list -m -f '{{.Dir}}' "$1")
}

mkdir "$folder/go"
source=$(go mod download -json "$cli@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
install -m 644 "$source/go.mod" "$source/go.sum" "$folder/go"
cp "$(.venv/bin/python -m temporal_supervisor.runtime.server.temporal_binary)" "$folder/temporal"
program temporal-server go.temporal.io/server/cmd/server
program temporal-sql-tool go.temporal.io/server/cmd/tools/sql
program ui-server github.com/temporalio/ui-server/v2/cmd/server
cp -r "$(module go.temporal.io/server)/schema" "$folder/schema"
cp "$(module go.temporal.io/server)/config/docker.yaml" "$folder/server.yaml"
cp "$(module github.com/temporalio/ui-server/v2)/config/docker.yaml" "$folder/ui.yaml"
chmod -R u+w,a+rX "$folder"

debootstrap --variant=minbase --include=$packages bookworm "$folder/root" "$mirror" >"$folder/debootstrap.log"
rm -f "$folder"/root/usr/lib/python3*/EXTERNALLY-MANAGED "$folder"/root/var/cache/apt/archives/*.deb
ln -s /usr/bin/python3 "$folder/root/usr/local/bin/python3"
ln -s /usr/bin/python3 "$folder/root/usr/local/bin/python"
# a network that looks into TLS has a certificate of its own
cp /etc/ssl/certs/ca-certificates.crt "$folder/root/etc/ssl/certs/"
tar -C "$folder/root" -c . | "$engine" import - "$base"

cp "$here"/stand_ins/* "$folder"
printf 'root\ngo\n' >"$folder/.dockerignore"
sed -n 's/^FROM \(python:[^ @]*\).*/\1/p; s/.*image: .*\(\(postgres\|temporalio\/[a-z-]*\):[^ @]*\).*/\1/p
    s/^x-temporal-image: [^ ]* \([^ @]*\).*/\1/p' Dockerfile docker-compose.yml | sort -u | while read -r image; do
    target=$(basename "${image%%:*}")
    set -- --network host --ulimit nofile=1024:1024 --ulimit nproc=1000:1000
    "$engine" build "$@" --quiet --target "$target" --tag "docker.io/$(
        case $image in */*) echo "$image" ;; *) echo "library/$image" ;; esac
    )" "$folder" >/dev/null
    echo "$image is a stand-in"
done
