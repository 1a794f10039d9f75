import re

import pytest

from ellipack.report import style


def luminance(colour: str) -> float:
    """Return the relative luminance that WCAG defines."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_colours_can_be_read(colours: dict[str, str]) -> None:
    for ground in ("--ground", "--card"):
        for text in ("--ink", "--soft", "--blue"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for line in ("--blue", "--vermilion", "--green", "--rest"):
        assert contrast(colours[line], colours["--card"]) >= 3, line
    assert len({colours[name] for name in style.LINES}) == len(style.LINES)


def test_day_and_night_have_the_same_colours_and_the_sheet_uses_no_other() -> None:
    assert style.LIGHT.keys() == style.DARK.keys()
    sheet = style.style_sheet()
    assert set(re.findall(r"var\((--\w+)\)", sheet)) <= style.LIGHT.keys()
    assert sheet.count("{") == sheet.count("}")
