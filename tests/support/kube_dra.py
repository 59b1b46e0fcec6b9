# SPDX-License-Identifier: Apache-2.0
"""The API resource.k8s.io of dynamic resource allocation in a cluster whose API server is older: as custom resources,
with the API server's own watches, conflicts, server-side apply, status and RBAC. Fields are not checked, and no
scheduler allocates: a test writes a claim's status itself.

    kube_dra.serve(cluster.api)
    cluster.api.create(kube_dra.claim("c"))
    kube_dra.allocate(cluster.api, "c", driver="gpu.berth.dev", pool="node1", devices=["gpu0"])
"""

from support import kube_api
from support.waiting import wait_until

GROUP = "resource.k8s.io"
# {kind: (plural, scope)}
KINDS = {"ResourceClaim": ("resourceclaims", "Namespaced"), "ResourceSlice": ("resourceslices", "Cluster"),
         "ResourceClaimTemplate": ("resourceclaimtemplates", "Namespaced"),
         "DeviceClass": ("deviceclasses", "Cluster"), "DeviceTaintRule": ("devicetaintrules", "Cluster")}
CLAIM = f"{GROUP}/v1 ResourceClaim"
SLICE = f"{GROUP}/v1 ResourceSlice"


def _definition(kind, versions):
    plural, scope = KINDS[kind]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    status = {"status": {}} if kind == "ResourceClaim" else {}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            # The API server refuses groups of k8s.io without it.
            "metadata": {"name": f"{plural}.{GROUP}",
                         "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"}},
            "spec": {"group": GROUP, "scope": scope,
                     "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                     "versions": [{"name": version, "served": True, "storage": number == 0, "subresources": status,
                                   "schema": {"openAPIV3Schema": anything}}
                                  for number, version in enumerate(versions)]}}


def serve(api, versions=("v1",)):
    """Makes the API server serve these versions, of the same content. An older API is told by its versions:
    ("v1beta2", "v1beta1")."""
    for kind in KINDS:
        api.apply(_definition(kind, versions))
    for kind, (plural, _) in KINDS.items():
        api.wait("apiextensions.k8s.io/v1 CustomResourceDefinition", f"{plural}.{GROUP}", _is_established)
    wait_until(lambda: _is_listed(api, versions), 30)
    api.resources.cache_clear()


def _is_established(one):
    return any(condition["type"] == "Established" and condition["status"] == "True"
               for condition in one.get("status", {}).get("conditions", []))


def _is_listed(api, versions):
    try:
        return all(len(api.call("GET", f"/apis/{GROUP}/{version}")["resources"]) >= len(KINDS) for version in versions)
    except kube_api.Refused:
        return False


def claim(name, device_class="gpu.berth.dev", count=1, version="v1", **more):
    """A claim of so many devices of a class, as request 'gpus'."""
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count, **more}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "ResourceClaim", "metadata": {"name": name},
            "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}}


def allocate(api, name, driver, pool, devices, config=(), **result):
    """Writes into the claim's status what a scheduler would: these devices of the driver's pool."""
    results = [{"request": "gpus", "driver": driver, "pool": pool, "device": device, **result} for device in devices]
    status = {"status": {"allocation": {"devices": {"results": results, "config": list(config)}}}}
    return api.patch(CLAIM, name, status, part="/status")
