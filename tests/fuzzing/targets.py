"""Every parser of what others send or write: any bytes are read, or refused in its own way.

A target returns, whatever it is given; what it raises is a defect of its parser.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from haptera.app.channel_talk import FrameBuffer
from haptera.cli.input.plan_file import parse_plan
from haptera.client.address import parse_address
from haptera.client.http1 import HttpExchange
from haptera.client.sse import Events
from haptera.daemon.agent import parse_invitation
from haptera.images.manifest import read as read_image
from haptera.kinds import KINDS
from haptera.kinds.group import parse_dimensions, parse_leader, parse_limits
from haptera.kinds.node import parse_mac
from haptera.kinds.pool import parse_factor, parse_sizes
from haptera.kinds.rules.rule import parse_rule
from haptera.kinds.service import parse_ready
from haptera.lab.http import Head, Response, parse_head
from haptera.lab.layout import parse_bmc
from haptera.model.declared.secrets import parse_reference
from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError
from haptera.model.messages import Mark, Message
from haptera.model.walltime import parse_duration_ms, parse_when
from haptera.modules.bmc_sensors import measured
from haptera.modules.ipmi import event_log
from haptera.modules.ipmi.sensors import sensors_of
from haptera.modules.netboot import dhcp, tftp
from haptera.modules.netboot.http_request import FileRequest, chunk_bytes, read_head
from haptera.modules.redfish import chassis, event_logs
from haptera.modules.redfish.documents import document_of
from haptera.modules.replica.channels.program_frames import program_frame
from haptera.modules.sensors import smart
from haptera.planner.explain.problem_line import answer_line
from haptera.rest.job_selector import parse_job_selector
from haptera.rest.schemas import SiteFile
from haptera.runtime.identity import pki
from haptera.runtime.identity.tokens import parse_token
from haptera.selectors.nodeset import parse_nodeset
from haptera.selectors.selector import parse_selector
from haptera.selectors.subscription import parse_cursor
from haptera.site.imports.ansible import read_ansible
from haptera.site.imports.clustershell import read_clustershell
from haptera.site.imports.layercake import read_layercake
from haptera.site.imports.netbox import read_netbox
from haptera.site.imports.warewulf import read_warewulf
from haptera.site.model.site import parse_site
from haptera.site.syntax.json_tree import read_json
from haptera.site.syntax.template import fill
from haptera.site.syntax.tree import Errors
from haptera.wire import control
from haptera.wire.frame import Reject, parse_header
from haptera.wire.ipc import Frames
from haptera.wire.sync import decode, encode
from haptera.wire.updates import Codec

Target = Callable[[bytes], None]

_SCHEMA: Final = 0x5C4E3A
_CODEC: Final = Codec(KINDS.values(), _SCHEMA)
(_HELLO,) = encode(
    Message(3, 1, _SCHEMA, Mark(7, 5, 1), Mark(0, 9, 2), words=(1,)), _CODEC, _SCHEMA
)
_WALL_S: Final = 1_900_000_000.0

# Short texts that users and modules write: the first byte says which.
_TEXTS: Final[tuple[Callable[[str], object], ...]] = (
    parse_address,
    lambda text: parse_bmc(text, where="a node"),
    parse_cursor,
    parse_dimensions,
    parse_duration_ms,
    parse_entity,
    parse_factor,
    parse_job_selector,
    parse_leader,
    parse_limits,
    parse_mac,
    parse_ready,
    parse_reference,
    parse_rule,
    parse_sizes,
    parse_token,
    lambda text: parse_when(text, _WALL_S),
)


def _refusing(parse: Callable[[str], object]) -> Target:
    """The target of a parser that tells what is wrong, of a file's text."""

    def target(data: bytes) -> None:
        with suppress(HapteraError):
            parse(data.decode("utf-8", "replace"))

    return target


def _typed(parse: Callable[[str], object]) -> Target:
    """The same of what is typed, where a word may have bytes that are no UTF-8."""

    def target(data: bytes) -> None:
        with suppress(HapteraError):
            parse(data.decode("utf-8", "surrogateescape"))

    return target


def _datagram(data: bytes) -> None:
    assert parse_header(data) is not None
    assert isinstance(decode(data, _CODEC, "n01"), Message | Reject)


def _section(data: bytes) -> None:
    """What an enrolled child says, a section of any type, in a body that is whole."""
    body = _HELLO + data[:1] + max(0, len(data) - 1).to_bytes(2, "big") + data[1:]
    assert isinstance(decode(body, _CODEC, "n01"), Message | Reject)


def _frames(data: bytes) -> None:
    """What a process says on its socket, in two pieces: the frames, and what they ask."""
    frames, half = Frames(), len(data) // 2
    for piece in (data[:half], data[half:]):
        told = frames.feed(piece)
        for frame in [] if isinstance(told, Reject) else told:
            control.parse_request(frame)
            control.parse_answer(frame)


def _dhcp(data: bytes) -> None:
    message = dhcp.parse(data)
    if message is not None:
        # Whoever serves it asks these of it, and answers with options that it had.
        assert all(one >= 0 for one in message.architectures)
        dhcp.encode(message)


def _tftp(data: bytes) -> None:
    packet = tftp.parse(data)
    if isinstance(packet, tftp.Read):
        tftp.negotiate(packet.options, 70_000)


def _netboot_http(data: bytes) -> None:
    """The head of a request, and each line as one that a chunk begins with."""
    request = read_head(data)
    if isinstance(request, FileRequest) and request.part is not None:
        start, end = request.part.within(70)
        assert 0 <= start <= end <= 70
    for line in data.splitlines(keepends=True):
        chunk_bytes(line)


def _lab_http(data: bytes) -> None:
    assert isinstance(parse_head(data), Head | Response)


def _answer(data: bytes) -> None:
    """What a server answers to the client, and the events in it."""
    exchange, events = HttpExchange("GET", "/v1/status", {"host": "a"}, None), Events()
    with suppress(ValueError, EOFError):
        for piece in (data[:40], data[40:], b""):
            list(events.feed(exchange.feed(piece)))


def _events(data: bytes) -> None:
    events, half = Events(), len(data) // 2
    with suppress(ValueError):
        list(events.feed(data[:half]))
        list(events.feed(data[half:]))


def _nodeset(text: str) -> None:
    nodes = parse_nodeset(text)
    assert parse_nodeset(str(nodes)) == nodes


def _selector(text: str) -> None:
    selector = parse_selector(text)
    assert parse_selector(selector.text).text == selector.text


def _short(data: bytes) -> None:
    if data:
        _typed(_TEXTS[data[0] % len(_TEXTS)])(data[1:])


def _site(text: str) -> None:
    parse_site([SiteFile("site.yaml", f"cluster: a\n{text}")], {"python": "p", "site": "s"})


def _template(text: str) -> None:
    def known(name: str) -> str:
        if name not in ("name", "rack"):
            raise HapteraError(f"nothing is called {name}")
        return {"name": "n1", "rack": "2"}[name]

    fill(text, known)


def _json(text: str) -> None:
    read_json(text, "source.json", Errors(), "write it anew")


def _imported(text: str) -> None:
    """What other tools describe a cluster in: the first letter says which."""
    source = SiteFile("source", text[1:])
    match text[:1]:
        case "a":
            read_ansible(source, {"rack": "rack"})
        case "c":
            read_clustershell([source], {"rack": "nodes"}, None)
        case "l":
            read_layercake(source, manage=True)
        case "n":
            read_netbox([source], {"rack": "rack"})
        case "w":
            read_warewulf(source, {"rack": "rack"})


def _pem(data: bytes) -> None:
    with suppress(ValueError):
        pki.parse_key(data)
    pki.parse_request(data)


def _documents(data: bytes) -> None:
    """What comes as JSON by other ways than the API: of an image, of a boot, of a saved plan."""
    parsers: Iterable[Callable[[bytes], object]] = (read_image, parse_invitation, parse_plan)
    for parse in parsers:
        with suppress(HapteraError):
            parse(data)


def _program(data: bytes) -> None:
    """What the program of a replica says on its channels."""
    buffer = FrameBuffer()
    with suppress(ConnectionError):
        buffer.feed(data)
        while (one := buffer.frame()) is not None:
            program_frame(one[0])


def _sensors(data: bytes) -> None:
    """What devices say of themselves, as numbers: the first letter says in whose words."""
    text = data[1:].decode("utf-8", "replace")
    match data[:1]:
        case b"e":
            _event_log(text)
        case b"i":
            measured(sensors_of(text))
        case b"r":
            whole = document_of(data[1:])
            measured(chassis.sensors_of(lambda _: whole, ["/redfish/v1/Chassis/1"]))
            logs = [*event_logs.logs_of(lambda _: whole, whole, "/redfish/v1/Systems/1")]
            event_logs.measured(event_logs.advanced(event_logs.advanced(None, []), logs))
        case b"s":
            assert all(isinstance(one, int | float) for one in smart.numbers_of(text).values())


def _event_log(text: str) -> None:
    """The same log, read a second time when it has grown."""
    cursor, info = None, event_log.info_of(text)
    for printed in (text[: len(text) // 2], text):
        assert 0 <= event_log.to_read(cursor, info) <= event_log.RECORDS_MAX
        cursor = event_log.advanced(cursor, info, printed)
        event_log.measured(cursor)
        assert msgspec.json.decode(msgspec.json.encode(cursor), type=type(cursor)) == cursor


def _problem(data: bytes) -> None:
    answer_line(data)


TARGETS: Final[Mapping[str, Target]] = {
    "answer": _answer,
    "datagram": _datagram,
    "dhcp": _dhcp,
    "documents": _documents,
    "events": _events,
    "frames": _frames,
    "imports": _refusing(_imported),
    "json": _refusing(_json),
    "lab-http": _lab_http,
    "netboot-http": _netboot_http,
    "nodeset": _typed(_nodeset),
    "pem": _pem,
    "problem": _problem,
    "program": _program,
    "section": _section,
    "selector": _typed(_selector),
    "sensors": _sensors,
    "short": _short,
    "site": _refusing(_site),
    "template": _refusing(_template),
    "tftp": _tftp,
}
