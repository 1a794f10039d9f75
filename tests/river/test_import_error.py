import subprocess
import sys


def test_the_error_without_river_says_how_to_install_it() -> None:
    script = "import sys; sys.modules['river'] = None; import ellipack; import ellipack.river"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: ellipack.river needs the package river, which is not installed: "
        "pip install 'ellipack[river]'"
    )
