"""The bill of materials, in JSON of CycloneDX 1.6: what the lock names, with its hashes."""

import json
import re
import uuid
from datetime import UTC, datetime
from typing import Any

from tools.release.python import PINNED

PIN = re.compile(r"^([a-z0-9-]+)==([^ ]+)(?: ; ([^\\\n]+?))? *\\?$", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
LICENSE = "Apache-2.0"


def bill_of_materials(lock: str, version: str, epoch: int) -> str:
    """A component for each package of the lock; all of them are in the Debian package."""
    components = [component(one[0]) for one in PINNED.finditer(lock)]
    ours = purl("haptera", version)
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # Of what it says, so that the same lock and version give the same document.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ours + lock)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": "haptera",
                "version": version,
                "purl": ours,
                "licenses": [{"license": {"id": LICENSE}}],
            },
        },
        "components": components,
        "dependencies": [{"ref": ours, "dependsOn": [one["bom-ref"] for one in components]}],
    }
    return json.dumps(bill, indent=1) + "\n"


def component(pinned: str) -> dict[str, Any]:
    """One package, from its lines in the lock; its marker says where it is installed."""
    found = PIN.search(pinned)
    assert found is not None, pinned
    name, version, marker = found.groups()
    where = {} if marker is None else {"properties": [{"name": "python:marker", "value": marker}]}
    return {
        "type": "library",
        "bom-ref": purl(name, version),
        "name": name,
        "version": version,
        "purl": purl(name, version),
        # The hash of a file each: a package has one for each machine that it was built for.
        "externalReferences": [
            {
                "type": "distribution",
                "url": purl(name, version),
                "hashes": [{"alg": "SHA-256", "content": one} for one in HASH.findall(pinned)],
            }
        ],
        **where,
    }


def purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"
