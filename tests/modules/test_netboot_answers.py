"""What machines that boot are answered by DHCP, and what is made for them."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import msgspec
import pytest

from haptera.model.entity import node_id
from haptera.modules.netboot import dhcp, module
from haptera.modules.netboot.answers import answer, boot_server_answer, proxy_answer
from haptera.modules.netboot.content import NetbootSettings, make_offer
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.dhcp_server import Answer
from haptera.modules.netboot.offers import BootOffer, Here
from haptera.sdk import Boot, HapteraError, Target

HERE = Here(IPv4Interface("10.9.0.1/24"), 4281)
MAC = bytes.fromhex("525400000001")
ADDRESS = IPv4Address("10.9.0.11")
BIOS = Path("/usr/lib/ipxe/undionly.kpxe")
EFI = Path("/usr/lib/ipxe/snponly.efi")
NATIVE = Path("/usr/lib/ipxe/ipxe.pxe")
RAW = {dhcp.VENDOR_CLASS: b"PXEClient:Arch:00000:UNDI:002001", dhcp.ARCHITECTURE: b"\0\0"}
IPXE = {**RAW, dhcp.IPXE: b"\xeb\3\1\0\0", dhcp.USER_CLASS: b"iPXE"}


@pytest.fixture
def offer() -> BootOffer:
    return BootOffer(
        "n01", MAC, ADDRESS, {0: BIOS, 7: EFI, 16: EFI}, {0: NATIVE}, {}, {}, "once", 1.0
    )


def ask(kind: int, options: dict[int, bytes] = RAW, **more: object) -> DhcpMessage:
    options = {dhcp.MESSAGE_TYPE: bytes([kind]), **options}
    return replace(DhcpMessage(dhcp.REQUEST, 7, MAC, options), **more)  # type: ignore[arg-type]


def test_firmware_gets_its_address_and_a_loader(offer: BootOffer) -> None:
    assert answer(ask(dhcp.DISCOVER), offer, HERE) == DhcpMessage(
        dhcp.REPLY,
        7,
        MAC,
        {
            dhcp.MESSAGE_TYPE: bytes([dhcp.OFFER]),
            dhcp.SERVER: HERE.address.packed,
            dhcp.ARCHITECTURE: b"\0\0",
            dhcp.LEASE_TIME: (3600).to_bytes(4, "big"),
            dhcp.SUBNET_MASK: bytes([255, 255, 255, 0]),
            dhcp.HOST_NAME: b"n01",
            dhcp.TFTP_SERVER: b"10.9.0.1",
            dhcp.BOOT_FILE: b"undionly.kpxe\0",
            dhcp.IPXE: bytes([176, 1, 1]),
            dhcp.VENDOR_CLASS: b"PXEClient",
            dhcp.VENDOR_OPTIONS: bytes([6, 1, 8, 255]),
        },
        yours=ADDRESS,
        server=HERE.address,
        file=b"undionly.kpxe",
    )


@pytest.mark.parametrize(
    ("options", "has_loader", "file"),
    [
        (RAW, False, b"undionly.kpxe"),
        (RAW, True, b"undionly.kpxe"),
        ({**RAW, dhcp.ARCHITECTURE: b"\0\7"}, False, b"snponly.efi"),
        ({**RAW, dhcp.ARCHITECTURE: b"\0\x0b"}, False, b""),
        # The first in its list that something is there for; older firmware names one elsewhere.
        ({**RAW, dhcp.ARCHITECTURE: b"\0\x06\0\7\0\0"}, False, b"snponly.efi"),
        ({dhcp.VENDOR_CLASS: b"PXEClient:Arch:00007:UNDI:003016"}, False, b"snponly.efi"),
        # An iPXE of the firmware's own loads ours first.
        (IPXE, False, b"ipxe.pxe"),
        (IPXE, True, b"http://10.9.0.1:4281/once/script"),
        ({**RAW, dhcp.USER_CLASS: b"\x04iPXE"}, True, b"http://10.9.0.1:4281/once/script"),
        (
            {dhcp.VENDOR_CLASS: b"HTTPClient:Arch:00016", dhcp.ARCHITECTURE: b"\0\x10"},
            False,
            b"http://10.9.0.1:4281/once/snponly.efi",
        ),
    ],
)
def test_what_is_loaded_fits_who_asks(
    options: dict[int, bytes], has_loader: bool, file: bytes, offer: BootOffer
) -> None:
    offer.loader_given = has_loader
    reply = answer(ask(dhcp.ASK, options | {dhcp.REQUESTED_ADDRESS: ADDRESS.packed}), offer, HERE)
    assert reply is not None
    assert (reply.type, reply.file) == (dhcp.ACK, file)


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (ask(dhcp.ASK, {dhcp.REQUESTED_ADDRESS: ADDRESS.packed}), dhcp.ACK),
        (ask(dhcp.ASK, {dhcp.REQUESTED_ADDRESS: bytes([10, 9, 0, 12])}), dhcp.NAK),
        (ask(dhcp.ASK, client=ADDRESS), dhcp.ACK),  # a renewal
        (ask(dhcp.ASK, {dhcp.SERVER: bytes([10, 9, 0, 2])}), None),  # took another's offer
        (ask(dhcp.INFORM, client=ADDRESS), dhcp.ACK),
        (ask(dhcp.RELEASE), None),
        (ask(dhcp.OFFER), None),
        (DhcpMessage(dhcp.REQUEST, 7, MAC), None),
        (replace(ask(dhcp.DISCOVER), op=dhcp.REPLY), None),
    ],
)
def test_each_request_has_its_answer(
    request_: DhcpMessage, kind: int | None, offer: BootOffer
) -> None:
    reply = answer(request_, offer, HERE)
    assert (None if reply is None else reply.type) == kind


def test_what_a_relay_says_goes_back_to_it(offer: BootOffer) -> None:
    relay, added = IPv4Address("10.9.7.1"), {dhcp.RELAY_AGENT: b"\1\4port"}
    reply = answer(ask(dhcp.DISCOVER, added, relay=relay), offer, HERE)
    assert reply is not None
    assert (reply.relay, reply.options[dhcp.RELAY_AGENT]) == (relay, b"\1\4port")


HTTP = {dhcp.VENDOR_CLASS: b"HTTPClient:Arch:00016", dhcp.ARCHITECTURE: b"\0\x10"}
UEFI_ARM64 = {dhcp.VENDOR_CLASS: b"PXEClient:Arch:00011", dhcp.ARCHITECTURE: b"\0\x0b"}
HTTP_ARM64 = {dhcp.VENDOR_CLASS: b"HTTPClient:Arch:00019", dhcp.ARCHITECTURE: b"\0\x13"}
TOLD = {
    dhcp.SERVER: HERE.address.packed,
    dhcp.TFTP_SERVER: b"10.9.0.1",
    dhcp.BOOT_FILE: b"undionly.kpxe\0",
    dhcp.VENDOR_CLASS: b"PXEClient",
    dhcp.VENDOR_OPTIONS: bytes([6, 1, 8, 255]),
}


@pytest.mark.parametrize(
    ("answered", "asked", "kind"),
    [
        (proxy_answer, dhcp.DISCOVER, dhcp.OFFER),
        (boot_server_answer, dhcp.ASK, dhcp.ACK),
        (boot_server_answer, dhcp.INFORM, dhcp.ACK),
    ],
)
def test_beside_another_server_firmware_is_told_a_file_and_nothing_else(
    answered: Answer, asked: int, kind: int, offer: BootOffer
) -> None:
    identity = {dhcp.MACHINE_ID: bytes(17), dhcp.ARCHITECTURE: b"\0\0"}
    assert answered(ask(asked, RAW | identity), offer, HERE) == DhcpMessage(
        dhcp.REPLY,
        7,
        MAC,
        {dhcp.MESSAGE_TYPE: bytes([kind]), **identity, **TOLD},
        server=HERE.address,
        file=b"undionly.kpxe",
    )


@pytest.mark.parametrize(
    ("answered", "request_"),
    [
        # The address is the other server's to give, and to renew.
        (proxy_answer, ask(dhcp.ASK, RAW | {dhcp.REQUESTED_ADDRESS: ADDRESS.packed})),
        (proxy_answer, ask(dhcp.ASK, RAW, client=ADDRESS)),
        (proxy_answer, ask(dhcp.INFORM, RAW)),
        (boot_server_answer, ask(dhcp.DISCOVER, RAW)),
        # An operating system that asks for an address, and firmware that nothing is there for.
        (proxy_answer, ask(dhcp.DISCOVER, {})),
        (boot_server_answer, ask(dhcp.INFORM, {dhcp.VENDOR_CLASS: b"MSFT 5.0"})),
        (proxy_answer, ask(dhcp.DISCOVER, RAW | {dhcp.ARCHITECTURE: b"\0\x0b"})),
        (proxy_answer, replace(ask(dhcp.DISCOVER), op=dhcp.REPLY)),
        (proxy_answer, DhcpMessage(dhcp.REQUEST, 7, MAC, RAW)),
    ],
)
def test_beside_another_server_the_rest_is_not_answered(
    answered: Answer, request_: DhcpMessage, offer: BootOffer
) -> None:
    assert answered(request_, offer, HERE) is None


def test_beside_another_server_firmware_boots_by_http_and_a_loader_by_its_script(
    offer: BootOffer,
) -> None:
    by_http = proxy_answer(ask(dhcp.DISCOVER, HTTP), offer, HERE)
    assert by_http is not None
    url = b"http://10.9.0.1:4281/once/snponly.efi"
    assert (by_http.file, by_http.options[dhcp.VENDOR_CLASS]) == (url, b"HTTPClient")
    offer.loader_given = True
    by_script = proxy_answer(ask(dhcp.DISCOVER, IPXE), offer, HERE)
    assert by_script is not None
    assert by_script.options[dhcp.BOOT_FILE] == b"http://10.9.0.1:4281/once/script\0"


SETTINGS = {"interface": "br0", "address": "10.9.0.1/24"}
FILES = ("kernel", "initramfs", "undionly.kpxe", "snponly.efi", "ipxe.pxe", "ipxe.efi")


def made(folder: Path, minos: str | None = None, **attributes: str) -> BootOffer:
    settings: NetbootSettings = module.settings({**SETTINGS, "loaders": str(folder / "minos")})
    return make_offer(target(folder, minos, **attributes), settings, 9.0)


def target(folder: Path, minos: str | None, **attributes: str) -> Target:
    given = {"address": "10.9.0.11", "mac": "52:54:00:00:00:01", **attributes}
    kept = {name: value for name, value in given.items() if value}
    boot = Boot("hp1.id.s3cret", "-----BEGIN", "10.9.0.1:4271")
    values = {} if minos is None else {"minos": minos}
    return Target(node_id("n01"), kept, values, boot=boot, run_dir=folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    minos = tmp_path / "minos"
    minos.mkdir()
    for name in FILES:
        (minos / name).write_bytes(name.encode())
    return tmp_path


def test_all_that_a_machine_fetches_is_made_before(folder: Path) -> None:
    offer = made(folder)
    base = f"http://10.9.0.1:4281/{offer.nonce}"
    assert offer.content["script"].decode().splitlines() == [
        "#!ipxe",
        f"kernel {base}/kernel initrd=initramfs haptera.name=n01 haptera.address=10.9.0.11/24"
        f" haptera.mac=52:54:00:00:00:01 haptera.boot={base} console=tty0 console=ttyS0 panic=10",
        f"initrd --name initramfs {base}/initramfs",
        "boot",
    ]
    assert msgspec.json.decode(offer.content["invitation"]) == {
        "token": "hp1.id.s3cret", "ca": "-----BEGIN", "parent": "10.9.0.1:4271"
    }  # fmt: skip
    assert "s3cret" not in repr(offer)
    assert made(folder).nonce != offer.nonce


def test_a_machine_is_offered_the_minos_that_is_desired_of_it(folder: Path) -> None:
    minos = folder / "minos" / "new"
    minos.mkdir()
    for name in ("kernel", "initramfs"):
        (minos / name).write_bytes(b"new")

    offer = made(folder, "new")

    assert offer.files == {"kernel": minos / "kernel", "initramfs": minos / "initramfs"}
    assert " haptera.minos=new " in offer.content["script"].decode()
    with pytest.raises(HapteraError, match="minos/newer/kernel: there is no such file") as told:
        made(folder, "newer")
    assert told.value.do == "haptera minos build --name newer"
    with pytest.raises(HapteraError, match="'arm64' is the folder of an architecture"):
        made(folder, "arm64")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_before_the_machine_is_switched_on(name: str, folder: Path) -> None:
    (folder / "minos" / name).unlink()
    with pytest.raises(HapteraError, match=f"minos/{name}: there is no such file|{name}"):
        made(folder)


ARM64 = ("minos/arm64/kernel", "minos/arm64/initramfs", "minos/ipxe-arm64.efi")


@pytest.fixture
def folder_of_both(folder: Path) -> Path:
    for name in ARM64:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder


@pytest.mark.parametrize(
    ("options", "file"),
    [
        (UEFI_ARM64, b"ipxe-arm64.efi"),
        (HTTP_ARM64, b"ipxe-arm64.efi"),
        (UEFI_ARM64 | {dhcp.IPXE: b"", dhcp.USER_CLASS: b"iPXE"}, b"ipxe-arm64.efi"),
        # What it is declared not to be is given an address and nothing to load.
        (RAW, b""),
        (HTTP, b""),
    ],
)
def test_a_machine_of_arm64_boots_what_is_built_for_it(
    folder_of_both: Path, options: dict[int, bytes], file: bytes
) -> None:
    offer = made(folder_of_both, architecture="arm64")
    assert {path.read_bytes() for path in offer.loaders.values()} == {ARM64[2].encode()}
    assert " console=tty0 console=ttyAMA0 panic=10" in offer.content["script"].decode()
    assert {name: path.read_bytes() for name, path in offer.files.items()} == {
        "kernel": ARM64[0].encode(), "initramfs": ARM64[1].encode()
    }  # fmt: skip
    reply = answer(ask(dhcp.DISCOVER, options), offer, HERE)
    assert reply is not None
    assert reply.file.rpartition(b"/")[2] == file


@pytest.mark.parametrize(
    ("missing", "do"),
    [
        (ARM64[0], "haptera minos build, on a machine of arm64; copy its folder there"),
        (ARM64[2], "copy it there from the package ipxe of Debian 13 or newer"),
    ],
)
def test_what_is_missing_for_arm64_is_named_and_stops_nobody_else(
    folder_of_both: Path, missing: str, do: str
) -> None:
    (folder_of_both / missing).unlink()
    with pytest.raises(HapteraError, match="there is no such file") as told:
        made(folder_of_both, architecture="arm64")
    assert (told.value.where, told.value.do) == (str(folder_of_both / missing), do)
    assert made(folder_of_both).files["kernel"] == folder_of_both / "minos/kernel"


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"mac": ""}, "has no attribute mac"),
        ({"architecture": "vax"}, "'vax' is no architecture that boots from the network"),
        ({"mac": "52:54"}, "is not a MAC address"),
        ({"address": ""}, "has no attribute address"),
        ({"address": "10.8.0.11"}, "is not an address for a machine in 10.9.0.0/24"),
        ({"address": "10.9.0.1"}, "is not an address for a machine"),
    ],
)
def test_an_attribute_that_cannot_be_is_named(
    attributes: dict[str, str], text: str, folder: Path
) -> None:
    with pytest.raises(HapteraError, match=text):
        made(folder, **attributes)


@pytest.mark.parametrize(
    ("setting", "text"),
    [({"address": "here"}, "are of IPv4"), ({"kernel_arguments": "a\nb"}, "line")],
)
def test_settings_that_cannot_be_are_refused(setting: dict[str, str], text: str) -> None:
    with pytest.raises(HapteraError, match=text):
        module.settings(SETTINGS | setting)


@pytest.mark.parametrize("setting", ["loaders", "folder"])
def test_what_others_may_have_changed_is_not_booted(tmp_path: Path, setting: str) -> None:
    for folder in (tmp_path, tmp_path / "minos"):
        folder.mkdir(exist_ok=True)
        for name in FILES:
            (folder / name).touch(mode=0o644)
    given = {**SETTINGS, "loaders": str(tmp_path), "folder": str(tmp_path)}
    make_offer(target(tmp_path, None), module.settings(given), 9.0)
    (tmp_path / "minos").chmod(0o777)
    given[setting] = str(tmp_path / "minos")
    with pytest.raises(HapteraError, match="others than its owner may write"):
        make_offer(target(tmp_path, None), module.settings(given), 9.0)
