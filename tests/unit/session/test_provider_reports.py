"""The provider's figures: how usage reports and length errors correct our count of a request."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.session.provider_reports import LearnedWindow, ProviderReports, Sizes
from compaction.tokens import LengthRefusal, Usage


@pytest.mark.parametrize(
    ("reports", "overhead", "left", "anchor"),
    [
        pytest.param([(400, 700), (1_000, 1_180)], 0, [500], 280, id="four fifths of our count, and 380"),
        pytest.param([(400, 700), (1_000, 1_180)], 0, [900, 800], 220, id="a second cut continues from the first"),
        pytest.param([(400, 700), (400, 760), (1_000, 1_180)], 0, [500], 280, id="the smallest of the shortest reports"),
        pytest.param([(1_000, 1_180), (400, 700), (1_000, 1_180)], 0, [500], 280, id="a short report in between"),
        pytest.param([(400, 700), (1_000, 760)], 0, [500], 93, id="a third of our count at the least"),
        pytest.param([(400, 500), (1_000, 1_600)], 0, [500], 600, id="at most our count"),
        pytest.param([(600, 700), (1_000, 900)], 0, [500], -100, id="too short a distance between them"),
        pytest.param([(500, 600), (1_000, 900)], 0, [400], 140, id="just enough distance"),
        pytest.param([(1_000, 1_180)], 0, [500], 180, id="one report"),
        pytest.param([(1_000, 1_180)], 300, [500], 240, id="one report, and the overhead"),
        pytest.param([(400, 700), (1_000, 1_180)], 0, [1_200], 180, id="no smaller"),
    ],
)
def test_after_a_cut_the_anchor_follows_the_providers_count(
    reports: list[tuple[int, int]], overhead: int, left: list[int], anchor: int
) -> None:
    """The provider's count is an overhead plus a factor times ours; two reports, or one and the overhead, give the factor."""
    figures = ProviderReports()
    for counted, tokens in reports:
        assert figures.record(Usage(tokens, 1), counted, overhead)
    for tokens in left:
        figures.cut(tokens)
    assert figures.anchor == anchor


@pytest.mark.parametrize(
    ("error", "sizes", "found"),
    [
        pytest.param(LengthRefusal(2_000, 1_000), (1_000, 0, 1_000), (2_000, 1_000, 500, 0), id="both figures"),
        pytest.param(LengthRefusal(4_000, 2_000), (1_000, 0, 1_000), (4_000, 2_000, 333, 1_000), id="three times our count"),
        pytest.param(LengthRefusal(50, 40), (5_400, 5_000, 400), (50, 40, 0, 49), id="less than the overhead"),
        pytest.param(LengthRefusal(None, 900), (1_000, 100, 0), (1_000, 900, 800, 100), id="only the window, before any view"),
        pytest.param(LengthRefusal(None, 1_200), (1_000, 100, 900), (1_201, 1_200, 899, 100), id="a window above our count"),
        pytest.param(LengthRefusal(), (1_000, -100, 1_100), (1_000, 750, 825, 0), id="no figures"),
        pytest.param(LengthRefusal(), (0, 0, 0), (1, 1, 1, 0), id="nothing was counted"),
    ],
)
def test_a_length_error_teaches_what_fits(
    error: LengthRefusal, sizes: tuple[int, int, int], found: tuple[int, int, int, int]
) -> None:
    """It gives the tokens of the request, the window, the tokens by our count that fit into it, and those beside them."""
    figures = ProviderReports()
    counted, overhead, ours = sizes
    tokens, most = figures.refused(error, counted, overhead, ours=ours)
    assert figures.last is not None
    assert figures.shortest is not None
    assert (tokens, window := figures.learned.window, figures.last.ours, beside := figures.shortest.theirs) == found
    assert (figures.anchor, figures.shortest.ours) == (min(beside, window), 0)
    assert most == figures.window() == min(window, figures.anchor + figures.last.ours)


@pytest.mark.parametrize(("tokens", "accepted", "window"), [(1, 0, 1), (1, 7, 7), (1_000, 0, 750)])
def test_a_window_that_an_error_teaches_without_figures(tokens: int, accepted: int, window: int) -> None:
    """It is three quarters of what was refused, at least one token, and no less than what was accepted."""
    assert LearnedWindow(accepted=accepted).taught(LengthRefusal(), tokens).window == window


def test_an_accepted_request_widens_a_learned_window() -> None:
    """A larger request than any before it was accepted; a smaller one, or one that cannot be right, teaches nothing."""
    figures = ProviderReports()
    assert figures.record(Usage(900, 1), 1_000)
    assert figures.record(Usage(700, 1), 800)
    assert figures.shortest == Sizes(800, 700)
    assert figures.to_dict() == {"anchor": -100, "learned": [None, 900]}
    figures.refused(LengthRefusal(2_000, 1_500), 1_000, 0, ours=1_000)
    assert not figures.record(Usage(1_700, 1), 100_000)
    assert figures.learned == LearnedWindow(1_500, 900)
    assert figures.record(Usage(1_700, 1), 1_000)
    assert figures.learned == LearnedWindow(1_700, 1_700)
    assert [figures.window(configured) for configured in (None, 1_600, 1_800)] == [1_700, 1_600, 1_700]


@pytest.mark.parametrize(
    ("saved", "learned"), [({}, [None, 0]), ({"learned": [0, 3]}, [1, 3]), ({"learned": [None, 0]}, [None, 0])], ids=str
)
def test_saved_figures_are_read(saved: dict[str, Any], learned: list[int | None]) -> None:
    """Without any, nothing is known; a window has a token at least."""
    figures = ProviderReports()
    assert figures.to_dict() == {"anchor": None, "learned": [None, 0]}
    figures.load({"anchor": 7, **saved})
    figures.cut(5)  # an anchor of another process says nothing of the factor
    assert figures.to_dict() == {"anchor": 7, "learned": learned}


def test_what_fits_is_saved_until_usage_is_reported() -> None:
    """A saved anchor that is another one is newer than the refusal."""
    figures, again, later = ProviderReports(), ProviderReports(), ProviderReports()
    figures.refused(LengthRefusal(2_000, 1_000), 1_000, 0, ours=1_000)
    saved = figures.to_dict()
    again.load(saved)
    later.load({**saved, "anchor": 900})
    assert (again.window(), later.window()) == (500, 1_000)
    later.load({"anchor": 7, "fitting": [7, 0]})
    assert later.window() == 1
    assert figures.record(Usage(900, 1), 500)
    assert "fitting" not in figures.to_dict()
