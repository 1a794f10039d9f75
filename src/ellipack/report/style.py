"""How the page looks: its colours by day and by night, and its style sheet."""

from importlib.resources import files
from typing import Final

LINES: Final = ("--blue", "--vermilion", "--green", "--pink", "--orange", "--sky")
"""Colours that lines and areas are told apart by, in order of use: Okabe and Ito's, for any kind of colour vision."""

LIGHT: Final = {
    "--ground": "#f4f6f8",
    "--card": "#ffffff",
    "--ink": "#1a212b",
    "--soft": "#566072",
    "--rule": "#dfe4ea",
    "--blue": "#0072b2",
    "--vermilion": "#d55e00",
    "--green": "#008a64",
    "--pink": "#b85f92",
    "--orange": "#e69f00",
    "--sky": "#56b4e9",
    "--rest": "#8b94a1",
    "--wash": "#e3f0f8",
    "--middle": "#f5f6f8",
}
DARK: Final = {
    "--ground": "#0e1217",
    "--card": "#171d25",
    "--ink": "#e9edf3",
    "--soft": "#a5afbe",
    "--rule": "#2c3540",
    "--blue": "#56b4e9",
    "--vermilion": "#f0813a",
    "--green": "#2cc295",
    "--pink": "#dd92be",
    "--orange": "#f0c04a",
    "--sky": "#2f6fb5",
    "--rest": "#7d8896",
    "--wash": "#1a2c3a",
    "--middle": "#222a34",
}


def colour(name: str) -> str:
    """Return what stands for a colour until the page knows whether it is day or night."""
    return f"var({name})"


def style_sheet() -> str:
    """Return the style sheet. Paper is always light; so is the screen while a print is being made."""
    night = f"@media screen and (prefers-color-scheme: dark) {{ :root:not(.printing) {_block(DARK)} }}"
    sheet = (files("ellipack.report") / "page.css").read_text(encoding="utf-8")
    return f":root {_block(LIGHT)}\n{night}\n{sheet}"


def _block(colours: dict[str, str]) -> str:
    scheme = "dark" if colours is DARK else "light"
    return "{ " + "".join(f"{name}: {value}; " for name, value in colours.items()) + f"color-scheme: {scheme}; }}"
