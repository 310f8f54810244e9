#!/bin/bash
# Runs scenarios of the MCP conformance suite against `temporal-supervisor mcp`: by name, or those of docs/mcp.md.
# npm installs the suite, and the Node that it needs, into a folder of the system's for temporary files.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${TMPDIR:-/tmp}/mcp-conformance
address=127.0.0.1:${PORT:-8765}
scenarios=(server-initialize server-session-lifecycle ping tools-list tools-call-error server-sse-multiple-streams
    resources-list sep-2164-resource-not-found prompts-list dns-rebinding-protection caching http-header-validation)
[ $# -eq 0 ] || scenarios=("$@")

mkdir -p "$folder"
cp "$here/token.mjs" "$folder"
npm install --silent --no-fund --no-audit --prefix "$folder" node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12
export PATH=$folder/node_modules/.bin:$PATH SUPERVISOR_MCP_TOKEN
SUPERVISOR_MCP_TOKEN=$(head -c 24 /dev/urandom | base64)

"$here/../../.venv/bin/temporal-supervisor" mcp --http "$address" & server=$!
trap 'kill $server' EXIT
until (exec 3<>"/dev/tcp/${address/://}") 2>/dev/null; do kill -0 $server; sleep 0.2; done

failed=0
for scenario in "${scenarios[@]}"; do
    said=$(NODE_OPTIONS="--import $folder/token.mjs" conformance server --url "http://$address/mcp" --scenario "$scenario" 2>&1) ||
        failed=1
    echo "$scenario: $(grep -a '^Passed:' <<<"$said" || tail -1 <<<"$said")"
done
exit $failed
