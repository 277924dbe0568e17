"""`haptera submit`: queue a command as a job, or an array of them; wait for its end."""

import re
import secrets
from typing import Final

import click

from haptera.cli.main import the_client
from haptera.cli.output.job_words import sentence
from haptera.cli.output.printing import Format, names_option, print_names, say
from haptera.cli.verb import answers, unwatched
from haptera.client import Client, calls
from haptera.model.errors import HapteraError
from haptera.model.walltime import parse_duration_ms
from haptera.queue.job import ENDED, JobState, RetryClass, Size
from haptera.rest.jobs import JobView, SubmitBind, SubmitBody, SubmitOverflow, SubmitSpec, Submitted

# As shells have it: what a signal ended has this and the signal's number as its status.
SIGNALLED: Final = 128
CANCELLED: Final = 1
_WAIT_S: Final = 10
_KEY_BYTES: Final = 16
_MB: Final = {"": 1, "M": 1, "G": 1024, "T": 1024 * 1024}
_MEMORY: Final = re.compile(r"([0-9]{1,9})([MGT]?)B?")


@click.command(context_settings={"allow_interspersed_args": False})
@answers(Submitted)
@unwatched("`--wait` waits for the end; `haptera why job:N` shows the state")
@click.option("--cpus", type=click.IntRange(1), default=1, show_default=True)
@click.option("--memory", default="512M", show_default=True, help="Memory: 512M, 4G.")
@click.option("--time", "time_limit", metavar="DURATION", help="Time limit of the job: 90s, 2h.")
@click.option("--priority", type=int, default=0, show_default=True, help="Higher goes first.")
@click.option("--name", default="job", show_default=True)
@click.option("--array", "count", type=click.IntRange(1), help="Submit this many jobs.")
@click.option(
    "--retry",
    type=click.Choice([one.value for one in RetryClass]),
    default=RetryClass.NEVER.value,
    show_default=True,
    help="lost: run it again if its node is lost while it runs.",
)
@click.option("--backend", help="Another engine to run it: slurm.")
@click.option(
    "--overflow",
    metavar="BACKEND[:DURATION]",
    multiple=True,
    help="Let this backend begin it too, once it has waited: slurm:10m.",
)
@click.option("--user", help="Run as this user of the node, root if need be; needs scope exec.")
@click.option("--image", metavar="NAME", help="Run it in this image of the cluster.")
@click.option("--folder", metavar="PATH", help="Begin in this folder of the image.")
@click.option(
    "--mount",
    "mounts",
    metavar="SOURCE:TARGET[:rw]",
    multiple=True,
    help="Show a path of the node in the image; needs scope exec.",
)
@click.option(
    "--device",
    "devices",
    metavar="DEVICE",
    multiple=True,
    help="Show a device of the node in the image: a path, vendor.com/gpu=0; needs scope exec.",
)
@click.option("--wait", is_flag=True, help="Wait until it ends; exit with its code.")
@names_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def submit(  # noqa: PLR0913 (an argument for each option)
    ctx: click.Context,
    cpus: int,
    memory: str,
    time_limit: str | None,
    priority: int,
    name: str,
    count: int | None,
    retry: str,
    backend: str | None,
    overflow: tuple[str, ...],
    user: str | None,
    image: str | None,
    folder: str | None,
    mounts: tuple[str, ...],
    devices: tuple[str, ...],
    wait: bool,
    output: str,
    command: tuple[str, ...],
) -> int:
    r"""Queue COMMAND as a job; it runs once, on the first node that has room.

    With --array, each job has its index, starting at 0, in HAPTERA_JOB_INDEX. With --wait,
    the exit code is that of the job, or the worst one of an array.

    \b
    Examples:
      haptera submit --cpus 4 --memory 8G --time 2h make -j4
      haptera submit --array 100 --name frames sh -c 'render $HAPTERA_JOB_INDEX'
      haptera submit --wait sh -c 'exit 3'
      haptera submit --cpus 64 --overflow slurm:10m make
      haptera submit --image tools -- python3 -c 'print(1 + 1)'
      haptera submit --image tools --mount /srv/data:/data:rw --folder /data make
    """
    client = the_client(ctx)
    limit_s = None if time_limit is None else parse_duration_ms(time_limit) // 1_000
    size, again = Size(cpus, _memory_mb(memory)), RetryClass(retry)
    binds, others = tuple(map(_bind, mounts)), tuple(map(_overflow, overflow))
    try:
        spec = SubmitSpec(
            command, size, limit_s, again, backend, user, image, folder, binds, devices, others
        )
    except UnicodeError:
        raise  # What is no text is said so by all verbs.
    except ValueError as error:
        raise HapteraError(str(error), do="see haptera submit --help") from None
    # With a key of its own: where the answer is lost, the same is asked again, and queued once.
    body = SubmitBody(spec, name, priority, count, secrets.token_hex(_KEY_BYTES))
    made = client.ask(calls.submit(body))
    _print_made(made, output)
    keys = range(made.first, made.last + 1)
    return max(_status(client, key) for key in keys) if wait else 0


def _print_made(made: Submitted, output: str) -> None:
    """The names of the jobs."""
    if not Format(output).for_people:
        names = [f"job:{key}" for key in range(made.first, made.last + 1)]
        print_names(names, made, output)
    elif made.first == made.last:
        say(f"job:{made.first}")
    else:
        say(f"job:{made.first} to job:{made.last}")


def _overflow(text: str) -> SubmitOverflow:
    name, colon, after = text.partition(":")
    if not name or (colon and not after):
        do = "write BACKEND, or with how long it waits first BACKEND:DURATION, as slurm:10m"
        raise HapteraError(f"{text!r} is no backend to overflow to", where="--overflow", do=do)
    return SubmitOverflow(name, parse_duration_ms(after) // 1_000 if after else 0)


def _status(client: Client, key: int) -> int:
    """The exit status of a job, once it has ended."""
    job = client.ask(calls.job(key))
    while job.state not in ENDED:
        job = client.ask(calls.job(key, wait_s=_WAIT_S))
    return _exit(job)


def _exit(job: JobView) -> int:
    if job.state is JobState.COMPLETE:
        return 0
    say(sentence(job), err=True)
    if job.state is JobState.CANCELLED or job.status is None:
        return CANCELLED
    return job.status if job.status > 0 else SIGNALLED - job.status


def _bind(text: str) -> SubmitBind:
    """A place of the node and where it is seen: /srv/data:/data, :rw at its end to write.

    Raises:
        HapteraError: it says something else.
    """
    match text.split(":"):
        case [source, target]:
            return SubmitBind(source, target)
        case [source, target, "ro" | "rw" as mode]:
            return SubmitBind(source, target, mode == "rw")
        case _:
            do = "write SOURCE:TARGET, or SOURCE:TARGET:rw"
            raise HapteraError(f"{text!r} is not a mount", do=do)


def _memory_mb(text: str) -> int:
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise HapteraError(f"{text!r} is not an amount of memory", do="write 512M or 4G")
    return int(match[1]) * _MB[match[2]]
