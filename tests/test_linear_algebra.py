import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ellipack import linear_algebra
from ellipack.learners.metric import learner
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.initial_state import LearnerSize, initial_state
from ellipack.learners.metric.serialization import to_archive
from ellipack.linear_algebra import single_threaded_blas
from ellipack.metric.mahalanobis import eigensystem


def limits() -> list[int]:
    """Return the number of threads of each BLAS library that is controlled, NumPy's among them."""
    return [each["num_threads"] for each in linear_algebra._controller().info() if each["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads() -> object:
    with threadpool_limits(2, user_api="blas"):
        yield
    assert not linear_algebra._limits


def test_the_limit_is_one_inside_and_restored_after() -> None:
    before = limits()
    assert before
    with single_threaded_blas():
        assert set(limits()) == {1}
    assert limits() == before


def test_blocks_may_be_nested() -> None:
    before = limits()
    with single_threaded_blas():
        with single_threaded_blas(), single_threaded_blas():
            assert set(limits()) == {1}
        assert set(limits()) == {1}
    assert limits() == before


def test_errors_restore_the_limit() -> None:
    before = limits()
    with pytest.raises(ZeroDivisionError), single_threaded_blas():
        raise ZeroDivisionError
    assert limits() == before


def test_an_error_before_the_block_does_not_keep_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    before = limits()

    def fail() -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(linear_algebra, "_controller", fail)
        with pytest.raises(MemoryError), single_threaded_blas():
            pass
    with single_threaded_blas():
        assert set(limits()) == {1}
    assert limits() == before


def test_the_first_block_may_end_before_the_second() -> None:
    before = limits()
    entered, left = threading.Event(), threading.Event()

    def first() -> None:
        with single_threaded_blas():
            entered.wait()
        left.set()

    thread = threading.Thread(target=first)
    thread.start()
    with single_threaded_blas():
        entered.set()
        left.wait()
        assert set(limits()) == {1}
    thread.join()
    assert limits() == before


def test_blocks_of_many_threads_keep_the_limit() -> None:
    before = limits()

    def work(_: int) -> bool:
        with single_threaded_blas():
            return set(limits()) == {1}

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(80)))
    assert limits() == before


def in_another_thread(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def test_learning_in_one_thread_does_not_block_limits_of_others() -> None:
    before = limits()

    def work() -> None:
        with single_threaded_blas():
            assert set(limits()) == {1}
        assert limits() == before

    for _ in range(2):
        work()
        in_another_thread(work)


def test_limits_of_other_code_neither_prevent_nor_outlast_a_block() -> None:
    with threadpool_limits(1, user_api="blas"), threadpool_limits(2, user_api="blas"):

        def work() -> None:
            with single_threaded_blas():
                assert set(limits()) == {1}
                with threadpool_limits(2, user_api="blas"):
                    pass

        in_another_thread(work)
        assert set(limits()) == {2}
    assert set(limits()) == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_waits_while_another_thread_sets_a_limit() -> None:
    setting, done = threading.Event(), []

    def set_limit() -> None:
        with linear_algebra._lock:
            setting.set()
            time.sleep(0.05)
            done.append(True)

    thread = threading.Thread(target=set_limit)
    thread.start()
    setting.wait()
    child = os.fork()
    if child == 0:
        with single_threaded_blas():
            os._exit(0 if done else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


FORK_WITH_INTERRUPT = """
import os, signal, threading, time
from ellipack import linear_algebra

def set_limit():
    with linear_algebra._lock:
        setting.set()
        forked.wait()

def interrupt(*_):
    raise KeyboardInterrupt

setting, forked = threading.Event(), threading.Event()
thread = threading.Thread(target=set_limit)
thread.start()
setting.wait()
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.1)
child = os.fork()  # the interrupt ends the wait for the thread; Python prints it and forks
if child == 0:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(20)  # ends a child that hangs
    with linear_algebra.single_threaded_blas():
        os._exit(0)
forked.set()
thread.join()
with linear_algebra.single_threaded_blas():
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_interrupt_while_a_fork_waits_leaves_parent_and_child_usable() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK_WITH_INTERRUPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "KeyboardInterrupt" in done.stderr


def learned_bits() -> str:
    """Return a digest of what a learner with many features learns and predicts."""
    X = np.random.default_rng(0).normal(size=(260, 120))
    y = np.sin(X[:, 0]) + X[:, 1:4] @ [1.0, -2.0, 0.5]
    state = initial_state(120, LearnerSize(2, 8, 1000), 0, MetricConfig(validation_points=16, pool=200))
    digest = sha256(learner.learn(state, X, y).tobytes())
    for _, array in sorted(to_archive(state).arrays_by_full_name().items()):
        digest.update(array.tobytes())
    return digest.hexdigest()


def test_learning_has_the_same_bits_for_any_number_of_blas_threads() -> None:
    digests = set()
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            digests.add(learned_bits())
    assert len(digests) == 1


def test_metrics_have_the_same_bits_for_any_number_of_blas_threads() -> None:
    rows = np.random.default_rng(0).normal(size=(400, 300))
    matrix = rows.T @ rows / 400
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(eigensystem(matrix))
    for one, two in zip(*found, strict=True):
        assert one.tobytes() == two.tobytes()


LIBRARIES = """
from ellipack import linear_algebra
controlled = len(linear_algebra._controller().info())
import numpy, scipy.linalg, threadpoolctl
print(controlled == len(threadpoolctl.ThreadpoolController().select(user_api="blas").info()) > 0)
"""


def test_the_libraries_of_numpy_and_scipy_are_both_controlled() -> None:
    assert subprocess.check_output([sys.executable, "-c", LIBRARIES]).split() == [b"True"]
