import pickle
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from ellipack.errors import ReentrantCallError
from ellipack.locks import LearnLock


def test_one_thread_at_a_time_holds_the_lock() -> None:
    lock, inside, most = LearnLock(), [0], [0]

    def change() -> None:
        for _ in range(200):
            with lock.turn:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                sleep(0)
                inside[0] -= 1

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(change) for _ in range(4)]:
            done.result(timeout=60)
    assert most == [1]


def test_a_thread_cannot_take_the_lock_twice() -> None:
    lock = LearnLock()
    with lock.turn, pytest.raises(ReentrantCallError):
        _ = lock.turn
    with lock.turn:
        pass


def test_an_error_releases_the_lock() -> None:
    lock = LearnLock()
    with pytest.raises(KeyError), lock.turn:
        raise KeyError
    with lock.turn:
        pass


def test_a_copied_lock_is_free() -> None:
    lock = LearnLock()
    with lock.turn:
        twin = pickle.loads(pickle.dumps(lock))
        with twin.turn:
            pass
