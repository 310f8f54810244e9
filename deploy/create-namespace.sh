#!/bin/sh
# Creates the namespace and the search attributes of runs where they are missing. May run again.
set -eu

# a server that just came up, and a namespace that was just created, are not found for some seconds
retry() {
    tries=60
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { echo "gave up: $*" >&2; return 1; }
        sleep 2
    done
}

present() {
    temporal operator namespace describe -n "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
        temporal operator namespace create -n "$TEMPORAL_NAMESPACE" --retention 30d
}

list_attributes() {
    existing=$(temporal operator search-attribute list -n "$TEMPORAL_NAMESPACE" 2>/dev/null)
}

add() {
    printf '%s\n' "$existing" | grep -qw "$1" ||
        temporal operator search-attribute create -n "$TEMPORAL_NAMESPACE" --name "$1" --type "$2"
}

retry present
retry list_attributes
add SupervisorPhase Keyword
add SupervisorTeam Keyword
add SupervisorWaiting Keyword
add SupervisorUsd Double
add SupervisorScore Double
add SupervisorOwner Keyword
add SupervisorStatus Keyword
