#!/bin/sh
# Gets what the tests of `make operate-test` run beside Workers, into a folder: Temporal's server and schema tool and a
# collector from their Go modules, Prometheus of Debian. Needs Go, and apt where there is no prometheus on PATH.
#   programs.sh FOLDER
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GOFLAGS=-mod=mod

if [ ! -e "$folder/server.yaml" ]; then
    version=v$(sed -n 's/^VERSION = "\([^"]*\)".*/\1/p' temporal_supervisor/runtime/server/temporal_binary.py)
    source=$(go mod download -json "github.com/temporalio/cli@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    install -D -m 644 "$source/go.mod" "$source/go.sum" -t "$scratch/temporal"
    cd "$scratch/temporal"
    go build -o "$folder/temporal-server" go.temporal.io/server/cmd/server
    go build -o "$folder/temporal-sql-tool" go.temporal.io/server/cmd/tools/sql
    server=$(go list -m -f '{{.Dir}}' go.temporal.io/server)
    rm -rf "$folder/schema"
    cp -r "$server/schema" "$folder/schema"
    chmod -R u+w,a+rX "$folder/schema"
    install -m 644 "$server/config/docker.yaml" "$folder/server.yaml"
fi
if [ ! -e "$folder/collector" ]; then
    cp -r "$here/collector" "$scratch/collector"
    cd "$scratch/collector"
    go mod tidy
    go build -o "$folder/collector" .
fi
if [ ! -e "$folder/prometheus" ]; then
    found=$(command -v prometheus || true)
    if [ -z "$found" ]; then
        cd "$scratch"
        apt-get download prometheus
        dpkg -x prometheus_*.deb .
        found=usr/bin/prometheus
    fi
    cp "$found" "$folder/prometheus"
fi
