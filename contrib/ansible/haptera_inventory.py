#!/usr/bin/env python3
"""Ansible's inventory of a haptera cluster: `ansible -i haptera_inventory.py @compute -m ping`.

It asks by the command `haptera`, with the client file that this finds ($HAPTERA_CLIENT); a token
of scope read is enough. The format is that of Ansible's inventory scripts: `--list` with all
variables in `_meta`, so that `--host` is never asked for.
"""

import json
import re
import subprocess
import sys

ASK = ("haptera", "get", "-o", "json", "node:*")
# Each is an attribute whose values become groups, as rack_r1.
GROUPED_BY = ("rack", "platform")


def unsafe(value):
    """The same, with texts that Ansible does not evaluate as templates: not all are the admin's."""
    if isinstance(value, str):
        return {"__ansible_unsafe": value}
    if isinstance(value, dict):
        return {name: unsafe(one) for name, one in value.items()}
    return value


def group_named(*words):
    """A name that Ansible takes for a group without a warning."""
    return re.sub(r"[^A-Za-z0-9_]", "_", "_".join(words))


def variables(node):
    """What is known of a node; `ansible_host` where it has an address."""
    told = {
        "haptera_condition": node["condition"],
        "haptera_attributes": node["attributes"],
        "haptera_desired": {name: one["value"] for name, one in node["desired"].items()},
        "haptera_observed": {name: one["value"] for name, one in node["observed"].items()},
    }
    if "address" in node["attributes"]:
        told["ansible_host"] = node["attributes"]["address"]
    return unsafe(told)


def groups_of(node):
    """The groups of the site file, its rack and platform, and the condition it is in."""
    attributes = node["attributes"]
    yield from filter(None, map(group_named, attributes.get("groups", "").split(",")))
    for name in GROUPED_BY:
        if attributes.get(name):
            yield group_named(name, attributes[name])
    yield group_named("condition", node["condition"])


def inventory(nodes):
    """All nodes, their groups and variables, in the form that `--list` has."""
    groups = {"all": {"hosts": [node["name"] for node in nodes]}}
    for node in nodes:
        for group in groups_of(node):
            groups.setdefault(group, {"hosts": []})["hosts"].append(node["name"])
    return {**groups, "_meta": {"hostvars": {node["name"]: variables(node) for node in nodes}}}


def main():
    if sys.argv[1:2] == ["--host"]:
        return "{}"
    asked = subprocess.run(ASK, stdout=subprocess.PIPE, check=False)
    if asked.returncode:
        sys.exit(f"haptera_inventory: {' '.join(ASK)} ended with {asked.returncode}: no inventory")
    return json.dumps(inventory(json.loads(asked.stdout)), indent=2)


if __name__ == "__main__":
    sys.stdout.write(f"{main()}\n")
