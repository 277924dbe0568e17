"""A layout keeps all apart, and its arrows where they belong."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from haptera.cli.output.drawing.layout import Layout, lay_out
from haptera.cli.output.drawing.place import spread
from haptera.cli.output.drawing.shapes import Arrow, Point, Size

# Two edges that meet are not apart by less than the arithmetic is exact.
SLACK = 1e-6

sizes = st.builds(Size, st.integers(20, 160), st.integers(16, 80))


@st.composite
def graphs(draw):
    boxes = draw(st.lists(sizes, min_size=1, max_size=9))
    ends = st.tuples(st.sampled_from(range(len(boxes))), st.sampled_from(range(len(boxes))))
    pairs = draw(st.lists(ends.filter(lambda pair: pair[0] != pair[1]), max_size=16))
    arrows = [Arrow(*pair, draw(sizes)) for pair in (pairs if len(boxes) > 1 else [])]
    first = draw(st.lists(st.sampled_from(range(len(boxes))), unique=True, max_size=3))
    return boxes, arrows, first


def around(middle: Point, size: Size) -> tuple[float, float, float, float]:
    half = Size(size.width / 2, size.height / 2)
    return (
        middle.x - half.width,
        middle.y - half.height,
        middle.x + half.width,
        middle.y + half.height,
    )


def overlap(one, other) -> bool:
    return (
        one[0] < other[2] - SLACK
        and other[0] < one[2] - SLACK
        and one[1] < other[3] - SLACK
        and other[1] < one[3] - SLACK
    )


def rectangles(layout: Layout, boxes, arrows):
    found = [around(*pair) for pair in zip(layout.boxes, boxes, strict=True)]
    labels = [around(at, arrow.label) for at, arrow in zip(layout.labels, arrows, strict=True)]
    return found, labels


@given(graphs())
def test_no_boxes_and_no_labels_overlap_and_all_are_on_the_page(graph) -> None:
    boxes, arrows, first = graph
    layout = lay_out(boxes, arrows, first)
    all_of_them = [one for some in rectangles(layout, boxes, arrows) for one in some]
    assert not any(overlap(*pair) for pair in combinations(all_of_them, 2))
    for left, top, right, bottom in all_of_them:
        assert min(left, top) >= -SLACK
        assert right <= layout.size.width + SLACK
        assert bottom <= layout.size.height + SLACK


@given(graphs())
def test_an_arrow_leads_from_its_box_through_its_label_to_its_box(graph) -> None:
    boxes, arrows, first = graph
    layout = lay_out(boxes, arrows, first)
    for arrow, route, label in zip(arrows, layout.routes, layout.labels, strict=True):
        for end, number in ((route[0], arrow.source), (route[-1], arrow.target)):
            left, top, right, bottom = around(layout.boxes[number], boxes[number])
            assert left - SLACK <= end.x <= right + SLACK
            assert min(abs(end.y - top), abs(end.y - bottom)) < SLACK
        assert any(
            one.x == other.x == label.x
            and min(one.y, other.y) - SLACK <= label.y <= max(one.y, other.y) + SLACK
            for one, other in pairwise(route)
        )


@given(graphs())
def test_no_arrow_passes_through_a_box_or_the_label_of_another(graph) -> None:
    boxes, arrows, first = graph
    layout = lay_out(boxes, arrows, first)
    found, labels = rectangles(layout, boxes, arrows)
    for number, route in enumerate(layout.routes):
        others = [*found, *(one for at, one in enumerate(labels) if at != number)]
        for one, other in pairwise(route):
            if one.x == other.x:
                y = sorted((one.y, other.y))
                assert not any(overlap((one.x, y[0], one.x, y[1]), each) for each in others)


@given(graphs())
def test_what_is_laid_out_twice_is_laid_out_alike(graph) -> None:
    assert lay_out(*graph) == lay_out(*graph)


@given(st.integers(2, 9), sizes)
def test_a_way_that_comes_first_leads_down(count, label) -> None:
    boxes = [Size(60, 30)] * count
    way = [Arrow(number, number + 1, label) for number in range(count - 1)]
    back = [Arrow(arrow.target, arrow.source, label) for arrow in way]
    layout = lay_out(boxes, [*way, *back], range(count))
    heights = [middle.y for middle in layout.boxes]
    assert heights == sorted(set(heights))


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 5), st.integers(1, 30))))
def test_what_is_spread_lies_apart_and_no_other_place_is_nearer(items) -> None:
    wanted = [float(one) for one, _, _ in items]
    weights = [float(one) for _, one, _ in items]
    apart = [float(one) for _, _, one in items[1:]]
    found = spread(wanted, weights, apart)

    def cost(places) -> float:
        each = zip(places, wanted, weights, strict=True)
        return sum(weight * (at - want) ** 2 for at, want, weight in each)

    def is_apart(places) -> bool:
        gaps = zip(places, places[1:], apart, strict=False)
        return all(right - left >= gap - SLACK for left, right, gap in gaps)

    assert is_apart(found)
    for first in range(len(found)):
        for last in range(first, len(found)):
            for step in (-1.0, 1.0):
                moved = [x + step * (first <= at <= last) for at, x in enumerate(found)]
                assert not is_apart(moved) or cost(moved) >= cost(found) - SLACK
