"""Jobs in images over the API: what is refused, to whom, and what is told of them."""

import pytest

from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

SIZE = {"cpus": 1, "memory_mb": 1}
DATA = {"source": "/srv/data", "target": "/data"}


@pytest.fixture
def app():
    return app_of(FakeBackend())


def submit(app, token="admin-token", **spec):
    body = {"spec": {"command": ["true"], "size": SIZE, **spec}}
    return ask(app, "POST", "/v1/jobs", token=token, body=body)


def test_a_job_names_its_image_and_is_seen_with_all_that_it_asked_for(app):
    asked = {
        "image": "tools",
        "folder": "/data",
        "mounts": [DATA],
        "devices": ["/dev/fuse", "v.com/gpu=0"],
    }
    made = submit(app, **asked)
    assert made.status == 201
    spec = ask(app, "GET", f"/v1/jobs/{made.json['first']}", token="read-token").json["spec"]
    assert {name: spec[name] for name in ("image", "folder", "devices")} == {
        name: asked[name] for name in ("image", "folder", "devices")
    }
    assert [(one["source"], one["target"]) for one in spec["mounts"]] == [("/srv/data", "/data")]
    lane = ask(app, "GET", "/v1/queue", token="read-token").json["lanes"][0]
    assert (lane["image"], lane["waiting"]) == ("tools", 1)


@pytest.mark.parametrize("field", ["mounts", "devices"])
def test_what_a_job_opens_on_its_node_takes_the_scope_to_run_commands(app, field):
    asked = {"mounts": [DATA], "devices": ["/dev/fuse"]}
    assert submit(app, token="write-token", image="tools").status == 201
    refused = submit(app, token="write-token", image="tools", **{field: asked[field]})
    assert refused.status == 403
    assert "cannot choose the mounts and devices of a job" in refused.json["detail"]


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"folder": "/data"}, "folder, mounts and devices are those of an image"),
        ({"mounts": [DATA]}, "folder, mounts and devices are those of an image"),
        ({"image": "tools", "backend": "slurm"}, "backend slurm runs no images"),
        ({"image": "tools", "folder": "data"}, "data is no absolute path"),
        ({"image": "tools", "mounts": [DATA | {"target": "data"}]}, "data is no absolute path"),
        ({"image": "tools", "mounts": [DATA] * 33}, "length <= 32"),
        ({"image": "", "folder": "/"}, "length >= 1"),
        ({"image": "a\nb"}, "text in one line"),
        ({"image": "tools", "devices": ["/dev/\0"]}, "text in one line"),
        ({"image": "tools", "devices": ["gpu0"]}, "gpu0 is no device"),
        ({"image": "tools", "devices": ["vendor.com/gpu=/etc"]}, "is no device"),
    ],
)
def test_what_no_job_can_be_is_refused(app, spec, what):
    answer = submit(app, **spec)
    assert answer.status == 400
    assert what in answer.json["detail"]
