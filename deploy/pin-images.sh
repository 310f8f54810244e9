#!/bin/sh
# Adds its digest to the tag of every image that the Dockerfile and the compose file take from a registry, or renews it.
# Asks the registries through `docker buildx`; look at the change before you commit it.
set -eu

cd "${1:-$(dirname "$0")/..}"
files="Dockerfile docker-compose.yml"
# shellcheck disable=SC2086
images=$(grep -hoE '(python|postgres|temporalio/[a-z-]+|grafana/[a-z-]+):[0-9][0-9A-Za-z._-]*' $files | sort -u)
for image in $images; do
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image")
    printf '%s\n' "$digest" | grep -qxE 'sha256:[0-9a-f]{64}' || { echo "no digest of $image: $digest" >&2; exit 1; }
    for file in $files; do
        sed -E "s|$image(@sha256:[0-9a-f]{64})?( \|$)|$image@$digest\2|" "$file" >"$file.pinned"
        cat "$file.pinned" >"$file"
        rm "$file.pinned"
    done
    echo "$image@$digest"
done
