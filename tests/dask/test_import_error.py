import subprocess
import sys


def test_the_error_without_dask_says_how_to_install_it() -> None:
    script = "import sys; sys.modules['distributed'] = None; import ellipack; import ellipack.dask"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: ellipack.dask needs the package distributed, which is not installed: "
        "pip install 'ellipack[dask]'"
    )
