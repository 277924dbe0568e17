"""What commands answer, as the files in sessions/ have it."""

import pytest

from tests.cli.playing import play, stories

pytestmark = pytest.mark.net
STORIES = stories()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_each_command_answers_what_its_session_says(story, tmp_path):
    """Write it anew, and read what changed: python -m tests.cli.playing NAME."""
    assert str(play(story, tmp_path)) == str(story)


def test_no_two_stories_have_one_name():
    assert len({one.name for one in STORIES}) == len(STORIES) > 50
