#!/bin/bash
# Runs scenarios of the MCP conformance suite, by name or those that docs/mcp.md and docs/mcp-servers.md list: those of
# servers against `temporal-supervisor mcp`, those of clients against what a team reaches its servers with.
# npm installs the suite, and the Node that it needs, into a new folder, which is removed at the end.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)  # of this user alone: in a fixed one another user may have put programs
address=127.0.0.1:${PORT:-8765}
clients=" initialize tools_call sse-retry request-metadata sep-2322-client-request-state http-standard-headers
    http-custom-headers http-invalid-tool-headers json-schema-ref-no-deref
    json-schema-2020-12-preservation "
scenarios=(server-initialize server-session-lifecycle ping tools-list tools-call-error server-sse-multiple-streams
    resources-list sep-2164-resource-not-found prompts-list dns-rebinding-protection caching http-header-validation $clients)
[ $# -eq 0 ] || scenarios=("$@")

mkdir -p "$folder"
cp "$here/token.mjs" "$folder"
npm install --silent --no-fund --no-audit --prefix "$folder" node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12
export PATH=$folder/node_modules/.bin:$PATH SUPERVISOR_MCP_TOKEN
SUPERVISOR_MCP_TOKEN=$(head -c 24 /dev/urandom | base64)

"$here/../../.venv/bin/temporal-supervisor" mcp --http "$address" & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until (exec 3<>"/dev/tcp/${address/://}") 2>/dev/null; do kill -0 $server; sleep 0.2; done

failed=0
for scenario in "${scenarios[@]}"; do
    if [[ " $(echo $clients) " == *" $scenario "* ]]; then
        run=(conformance client --command "$here/../../.venv/bin/python $here/client.py" --scenario "$scenario")
    else
        export NODE_OPTIONS="--import $folder/token.mjs"
        run=(conformance server --url "http://$address/mcp" --scenario "$scenario")
    fi
    said=$("${run[@]}" 2>&1) || { failed=1 scenario="FAILED $scenario"; }
    unset NODE_OPTIONS
    echo "$scenario: $(grep -a '^Passed:' <<<"$said" || tail -1 <<<"$said")"
done
exit $failed
