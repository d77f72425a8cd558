"""Blocks that come quickly are not handed to threads, and slow ones are."""

from forebay.run.hesitation import Hesitation


def after(*seconds):
    hesitation = Hesitation()
    for each in seconds:
        hesitation.observe(each)
    return hesitation


def test_quick_pieces_never_end_it():
    assert not after(*[0.0001] * 1000).over


def test_the_first_piece_does_not_count():
    assert not after(1.0).over
    assert not after(1.0, *[0.0001] * 10).over


def test_slow_pieces_end_it_at_once():
    assert after(1.0, 1.0).over


def test_pieces_that_are_a_little_slow_end_it_when_there_are_enough():
    assert not after(*[0.001] * 16).over
    assert after(*[0.001] * 30).over


def test_a_single_slow_piece_may_have_been_an_accident():
    assert not after(*[0.0001] * 5, 0.05, *[0.0001] * 100).over
    assert after(*[0.01] * 6).over


def test_what_is_slow_only_at_first_does_not():
    assert not after(*[0.001] * 16, *[0.0002] * 100).over


def test_it_says_how_long_they_took():
    assert str(after(0.5, 0.25, 0.25)) == "a block takes 2.5e+02 ms"
