#!/usr/bin/env bash
# What a release consists of, in dist/: wheel, source package, their dependencies (CycloneDX) with licences. Both
# packages are installed into an empty environment each, and answer the demo's goal there, in an empty folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
uv=$1
rm -rf dist
"$uv" build --quiet
"$uv" export --quiet --locked --no-dev --no-emit-project --format cyclonedx1.5 --output-file dist/sbom.cdx.json >/dev/null
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$uv" export --quiet --locked --no-dev --no-emit-project --output-file "$scratch/locked.txt" >/dev/null
for package in dist/*.whl dist/*.tar.gz; do
    environment="$scratch/$(basename "$package")"
    "$uv" venv --quiet "$environment"
    "$uv" pip install --quiet --python "$environment/bin/python" --require-hashes -r "$scratch/locked.txt"
    "$uv" pip install --quiet --python "$environment/bin/python" --no-deps "$package"
    mkdir "$environment/empty"
    (
        cd "$environment/empty"
        ../bin/temporal-supervisor --version
        ../bin/python -m temporal_supervisor.console.demo </dev/null >demo.txt 2>demo.log || { cat demo.log >&2; exit 1; }
        grep -q . demo.txt
    )
    echo "$package: installed in an empty environment, the demo answers"
done
"$environment/bin/python" - >dist/licences.txt <<'EOF'
from importlib.metadata import distributions

for package in sorted(distributions(), key=lambda package: package.name.lower()):
    said = package.metadata
    classifiers = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier", []) if line.startswith("License ::")]
    licence = said.get("License-Expression") or ", ".join(classifiers) or (said.get("License") or "not said").split("\n")[0]
    print(f"{package.name} {package.version}: {licence}")
EOF
ls dist
