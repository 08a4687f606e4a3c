#!/bin/sh
# Checks the manifests against the published schemas of Kubernetes, unknown fields included. The schemas come with
# the package kubernetes-validate (PyPI). cert-manager's kinds have none there.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
for version in 1.32 1.34; do
    for file in namespace server network-policy validating-webhook mutating-webhook admission-policy; do
        "$python" -m kubernetes_validate -k "$version" --strict --no-warn "$file.yaml"
    done
done
